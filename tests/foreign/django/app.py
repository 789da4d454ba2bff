"""A category of the shop: Django's ORM on SQLite, and its templates. All of it in one file."""

from pathlib import Path

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import models
from django.shortcuts import render
from django.urls import path

HERE = Path(__file__).parent
settings.configure(
    SECRET_KEY="not a secret: nothing is signed",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": HERE.parents[2] / ".deps" / "shop.db",
            "CONN_MAX_AGE": None,
        }
    },
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [HERE / "templates"]}],
)
django.setup()


class Product(models.Model):
    name = models.TextField()
    category = models.TextField()
    cents = models.IntegerField()
    stock = models.IntegerField()

    class Meta:
        app_label = "shop"
        db_table = "product"
        managed = False


def category(request, name):
    there = Product.objects.filter(category=name, stock__gt=0)
    listed = there.order_by("cents")[:40]
    return render(request, "category.html", {"name": name, "count": there.count(), "products": listed})


urlpatterns = [path("category/<name>", category)]
application = get_wsgi_application()
