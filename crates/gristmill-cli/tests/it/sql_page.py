"""Says the transcripts of docs/sql.md with psycopg, every literal and variable as a
parameter without a type, each statement as a login with the one role that may.

    sql_page.py URL PAGE
"""

import re
import sys

import psycopg

ROLES = {
    "put": "enqueue enqueue_many wake result",
    "work": "claim complete complete_many error retry fail release extend checkpoint requeue_expired maintain",
    "read": "stats schedules",
}


def steps(page):
    """Each statement, and what is printed after it."""
    for block in re.findall(r"^```psql\n(.*?)^```", page, re.S | re.M):
        for step in re.split(r"^shop=> ", block, flags=re.M)[1:]:
            typed, printed = [], []
            for line in step.splitlines():
                if line.startswith("shop-> "):
                    typed.append(line[7:])
                elif typed:
                    printed.append(line)
                else:
                    typed.append(line)
            yield " ".join(typed), printed


def speaker(statement):
    for role, names in ROLES.items():
        if any(f"gristmill.{name}(" in statement for name in names.split()):
            return role
    if "gristmill.tasks" in statement and "session_user" not in statement:
        return "read"
    return "admin" if "gristmill." in statement else None


def words(lines):
    lines = [" ".join(line.split()) for line in lines if not re.fullmatch(r"[-+]*", line)]
    return [line for line in lines if line]


def main(url, path):
    known, said = {}, 0
    with psycopg.connect(url, autocommit=True) as db:
        for typed, printed in steps(open(path).read()):
            keep = typed.endswith("\\gset")
            statement = typed.removesuffix("\\gset").strip().rstrip(";")
            values = []

            def parameter(found):
                literal, name = found.group(1), found.group(2) or found.group(3)
                values.append(known[name] if name else literal[1:-1].replace("''", "'"))
                return f"${len(values)}"

            if not statement.startswith("CREATE"):
                statement = re.sub(r"('(?:[^']|'')*')|(?<!:):'(\w+)'|(?<!:):(\w+)",
                                   parameter, re.sub(r":'(\w+)'", r":\1", statement))
            role = speaker(statement)
            db.execute(f"SET SESSION AUTHORIZATION page_{role}" if role
                       else "RESET SESSION AUTHORIZATION")
            cursor = psycopg.RawCursor(db)
            answer = []
            try:
                cursor.execute(statement, values)
            except psycopg.Error as error:
                answer = [f"ERROR: {error.diag.message_primary}"]
            result = cursor.pgresult
            if not answer and result is not None and result.nfields:
                names = [column.name for column in cursor.description]
                rows = [[(result.get_value(row, at) or b"").decode() for at in range(len(names))]
                        for row in range(result.ntuples)]
                if keep:
                    known.update(zip(names, rows[0]))
                else:
                    count = f"({len(rows)} row{'' if len(rows) == 1 else 's'})"
                    answer = [" | ".join(names), *(" | ".join(row) for row in rows), count]
            if words(answer) != words(printed):
                sys.exit(f"{typed}\n{statement} {values}\nsaid {words(answer)}\n"
                         f"not  {words(printed)}")
            said += 1
    print(f"{said} statements")


main(*sys.argv[1:])
