//! A shop's newest reviews as a page: filtered, sorted and rendered for every request.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;
use minijinja::{Environment, context};
use serde::{Deserialize, Serialize};

const PAGE: &str = include_str!("../templates/reviews.html");

#[derive(Serialize)]
struct Review {
    article: u32,
    stars: u32,
    day: u32,
    text: String,
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    stars: u32,
}

struct Shop {
    reviews: Vec<Review>,
    pages: Environment<'static>,
}

async fn reviews(State(shop): State<Arc<Shop>>, Query(wanted): Query<Wanted>) -> Result<Html<String>, StatusCode> {
    let mut found: Vec<&Review> = shop.reviews.iter().filter(|review| review.stars >= wanted.stars).collect();
    found.sort_by_key(|review| (std::cmp::Reverse(review.day), review.article));
    found.truncate(40);
    let page = shop.pages.get_template("reviews.html").and_then(|page| page.render(context! { found }));
    page.map(Html).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[tokio::main]
async fn main() {
    let reviews = (0..2000).map(|i| Review {
        article: i * 31 % 500,
        stars: i * 7 % 5 + 1,
        day: i * 7919 % 365,
        text: format!("It is <b>as good</b> as {} of the others.", i % 9),
    });
    let mut pages = Environment::new();
    pages.add_template("reviews.html", PAGE).expect("the template is whole");
    let shop = Arc::new(Shop { reviews: reviews.collect(), pages });
    let app = Router::new().route("/reviews", get(self::reviews)).with_state(shop);
    let port = std::env::var("PORT").expect("PORT says where to listen");
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("the port is free");
    axum::serve(listener, app).await.expect("it serves until it is ended");
}
