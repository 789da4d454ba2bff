CREATE TABLE stock (id integer PRIMARY KEY, kind integer NOT NULL, shelf integer NOT NULL, pieces integer NOT NULL);
INSERT INTO stock SELECT i, i % 20, i % 12, i * 37 % 100 FROM generate_series(1, 4000) AS i;
-- As long as a larger table takes on a disk.
CREATE FUNCTION slow() RETURNS void LANGUAGE sql AS $$ SELECT pg_sleep(0.03); $$;
