"""Makes the SQLite database of a shop that several of these apps read: `python3 shop.py FILE`."""

import contextlib
import os
import sqlite3
import sys

CATEGORIES = ("garden", "kitchen", "office", "sports", "toys", "travel")
COLOURS = ("red", "green", "blue", "black", "white")
THINGS = ("bag", "bottle", "box", "brush", "chair", "lamp", "rack", "table")


def products():
    for number in range(1, 2001):
        colour, thing = COLOURS[number % 5], THINGS[number % 8]
        name = f"{colour} {thing} {number}"
        yield number, name, CATEGORIES[number % 6], number * 37 % 5000 + 99, number * 13 % 50


def main():
    path = sys.argv[1]
    # Beside, then renamed: one that is there is whole.
    with contextlib.closing(sqlite3.connect(f"{path}.new")) as database:
        database.executescript(
            "DROP TABLE IF EXISTS product;"
            "CREATE TABLE product (id integer PRIMARY KEY, name text, category text, cents integer, stock integer);"
            "CREATE INDEX product_category ON product (category);"
        )
        database.executemany("INSERT INTO product VALUES (?, ?, ?, ?, ?)", products())
        database.commit()
    os.rename(f"{path}.new", path)


if __name__ == "__main__":
    main()
