#!/bin/sh
# The whole example against the database in DATABASE_URL, which has Gristmill's
# schema. Ends with what it left behind.
set -eu
cd "$(dirname "$0")"
: "${DATABASE_URL:?say which database, like postgres://localhost/kitchen}"
run() { psql -X -q -v ON_ERROR_STOP=1 "$DATABASE_URL" "$@"; }

echo '== tables, ingredients and the queue'
run -f sql/schema.sql
run -f data/ingredients.sql
run -A -t -f sql/queue.sql >/dev/null

echo '== lines of recipes from two sources'
run -A -t -v source=scraper -f sql/put.sql <data/scraped.csv
run -A -t -v source=manual -f sql/put.sql <data/manual.csv

echo '== a worker is killed with three lines in its hands'
./worker.py --source scraper --batch 3 --lease 2 --slow 60 &
victim=$!
until [ "$(run -A -t -c "SELECT processing FROM gristmill.stats() WHERE queue = 'ingredient-match'")" = 3 ]; do :; done
kill -9 $victim
wait $victim 2>/dev/null || :

echo '== two workers in Python and one in the shell'
./worker.py --source scraper & one=$!
./worker.py --source scraper & two=$!
./worker.sh manual
wait $one $two
# The killed worker's lease runs out after its two seconds; the next claim
# takes its lines back.
until [ "$(run -A -t -c "SELECT ready + processing FROM gristmill.stats() WHERE queue = 'ingredient-match'")" = 0 ]; do
    ./worker.py
done

echo '== what was matched'
run -c 'SELECT l.line, i.name AS ingredient, l.source
          FROM recipe_line l JOIN ingredient i ON i.id = l.ingredient ORDER BY l.id'

echo '== one more name, then the nightly workflow'
run -c "INSERT INTO ingredient_alias SELECT 'aubergine', id FROM ingredient WHERE name = 'eggplant'
        ON CONFLICT DO NOTHING"
QUEUE_RETRY_FAILED=true ./nightly.sh
./worker.py
./worker.sh manual
echo '== what is left for a person'
run -c "SELECT t.id, t.key AS line, t.error, t.note FROM gristmill.tasks t WHERE t.state = 'failed'"
