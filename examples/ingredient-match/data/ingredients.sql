-- What lines of recipes can mean, and the names it goes by.
INSERT INTO ingredient (name)
VALUES ('flour'), ('sugar'), ('egg'), ('tomato'), ('onion'), ('garlic'), ('olive oil'), ('eggplant'),
       ('milk'), ('butter')
ON CONFLICT DO NOTHING;
INSERT INTO ingredient_alias (alias, ingredient) SELECT name, id FROM ingredient
ON CONFLICT DO NOTHING;
INSERT INTO ingredient_alias (alias, ingredient)
SELECT a.alias, i.id
  FROM (VALUES ('plain flour', 'flour'), ('all-purpose flour', 'flour'), ('caster sugar', 'sugar'),
               ('extra virgin olive oil', 'olive oil'), ('unsalted butter', 'butter'),
               ('chopped tomato', 'tomato')) AS a (alias, name)
  JOIN ingredient i ON i.name = a.name
ON CONFLICT DO NOTHING;
