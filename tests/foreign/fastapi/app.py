"""Recommendations: another service scores, and this one joins, sorts and validates."""

import asyncio

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()
TITLES = {number: f"book {number}" for number in range(5000)}


class Book(BaseModel):
    id: int
    title: str
    score: float
    tags: list[str]


async def scores(reader: int) -> dict[int, float]:
    # A call of the service that knows.
    await asyncio.sleep(0.01)
    return {(reader * 31 + i * 17) % 5000: (i * 7919 % 1000) / 1000 for i in range(200)}


@app.get("/recommended/{reader}")
async def recommended(reader: int, least: float = 0.2) -> list[Book]:
    if reader < 1:
        raise HTTPException(404, "no such reader")
    scored = sorted((await scores(reader)).items(), key=lambda each: -each[1])
    return [
        Book(id=book, title=TITLES[book], score=score, tags=[f"shelf {book % 12}", f"year {1990 + book % 30}"])
        for book, score in scored
        if score >= least
    ][:50]
