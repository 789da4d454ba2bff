CREATE TABLE product (id integer PRIMARY KEY, name text NOT NULL, price_cents integer NOT NULL);
INSERT INTO product
SELECT n, 'Product ' || n || ' of the catalogue', 100 + n * 37 % 9900
FROM generate_series(1, 500) AS n;
