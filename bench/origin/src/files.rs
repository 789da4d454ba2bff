//! Answers by size: `/16384` has a body of so many bytes. Any request may have a body. Before
//! `/kept/16384` it says that the connection is kept, as clients of HTTP/1.0 must be told; `/counts`
//! tells how many requests there were.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use crate::server::{self, Answers, COUNTS, Counts};

/// Answers that were asked for before, by path.
#[derive(Default)]
struct Files {
    made: HashMap<String, Rc<[u8]>>,
}

const LARGEST: usize = 16 << 20;
const KEPT: &str = "/kept";

pub fn serve(address: SocketAddr) -> std::io::Result<()> {
    server::serve(address, Files::default())
}

impl Answers for Files {
    fn answer(&mut self, path: &str, counts: Counts) -> Rc<[u8]> {
        if let Some(answer) = self.made.get(path) {
            return Rc::clone(answer);
        }
        if path == COUNTS {
            return counts.answer();
        }
        let answer = made(path);
        self.made.insert(path.to_owned(), Rc::clone(&answer));
        answer
    }
}

fn made(path: &str) -> Rc<[u8]> {
    let (fields, path) = match path.strip_prefix(KEPT) {
        Some(rest) => ("Connection: keep-alive\r\n", rest),
        None => ("", path),
    };
    let size = path.strip_prefix('/').and_then(|size| size.parse().ok()).unwrap_or(0);
    server::with_body(fields, &vec![b'x'; usize::min(size, LARGEST)])
}
