CREATE TABLE counter (value integer NOT NULL);
INSERT INTO counter VALUES (0);
CREATE FUNCTION count_one() RETURNS integer LANGUAGE sql AS $$
  UPDATE counter SET value = value + 1;
  SELECT pg_sleep(0.008);
  SELECT value FROM counter;
$$;
