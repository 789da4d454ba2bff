//! A little shop for scripts: a login, lists, items and a cart, always the same.

use std::net::SocketAddr;
use std::rc::Rc;

use crate::server::{self, Answers, COUNTS, Counts};

struct Shop {
    /// By the beginning of the path, the longest first.
    pages: Vec<(&'static str, Rc<[u8]>)>,
    nothing: Rc<[u8]>,
}

const JSON: &str = "Content-Type: application/json\r\nX-Request-Id: r-4711\r\n";
const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

const LOGIN: &str =
    r#"{"token":"t-5f2c81d09ab34e67","user":{"id":17,"name":"Ada","groups":["buyers","testers"]}}"#;
const ITEM: &str = r#"{"id":102,"name":"Kettle","price":{"amount":2995,"currency":"EUR"},"stock":12,
    "tags":["kitchen","steel"],"related":[103,107]}"#;
const CART: &str = r#"{"cart":{"id":"c-88","lines":[{"item":102,"count":2}],"total":5990}}"#;
const FORM: &str = r#"<!doctype html><title>Order</title><form method="post" action="/orders">
    <input type="hidden" name="csrf" value="9f86d081884c7d65"><button>Buy</button></form>"#;
const ORDER: &str = r#"{"order":{"id":"o-3001","state":"paid","cart":"c-88"}}"#;

pub fn serve(address: SocketAddr) -> std::io::Result<()> {
    server::serve(address, Shop::new())
}

impl Shop {
    fn new() -> Self {
        let json = |body: &str| server::with_body(JSON, body.as_bytes());
        Shop {
            pages: vec![
                ("/checkout", server::with_body(HTML, FORM.as_bytes())),
                ("/items/", json(ITEM)),
                ("/orders", json(ORDER)),
                ("/login", json(LOGIN)),
                ("/items", json(&items())),
                ("/cart", json(CART)),
            ],
            nothing: json("{}"),
        }
    }
}

impl Answers for Shop {
    fn answer(&mut self, path: &str, counts: Counts) -> Rc<[u8]> {
        if path == COUNTS {
            return counts.answer();
        }
        let page = self.pages.iter().find(|(beginning, _)| path.starts_with(beginning));
        Rc::clone(page.map_or(&self.nothing, |(_, answer)| answer))
    }
}

fn items() -> String {
    let one = |id| format!(r#"{{"id":{id},"name":"Item {id}","price":{}}}"#, id * 7);
    let all: Vec<String> = (101..113).map(one).collect();
    format!(r#"{{"items":[{}],"page":1,"next":"/items?page=2"}}"#, all.join(","))
}
