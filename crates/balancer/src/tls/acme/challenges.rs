//! Tokens that the authority may ask for (RFC 8555 8.3).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Shared by the agent, which adds tokens, and all connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Challenges(Arc<RwLock<HashMap<String, String>>>);

/// The tokens of one order. They are forgotten when dropped.
pub(crate) struct Posted<'c> {
    challenges: &'c Challenges,
    tokens: Vec<String>,
}

const CHALLENGE_REQUEST_PREFIX: &[u8] = b"GET /.well-known/acme-challenge/";

impl Challenges {
    /// The answer to a request with this header, if the authority sent it.
    pub(crate) fn answer(&self, head: &[u8]) -> Option<String> {
        let rest = head.strip_prefix(CHALLENGE_REQUEST_PREFIX)?;
        let token = rest.split(|&byte| byte == b' ').next()?;
        let token = std::str::from_utf8(token).ok()?;
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    pub(crate) fn post(&self) -> Posted<'_> {
        Posted { challenges: self, tokens: Vec::new() }
    }
}

impl Posted<'_> {
    pub(crate) fn add(&mut self, token: &str, answer: &str) {
        self.tokens.push(token.into());
        let mut known = self.challenges.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(token.into(), answer.into());
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        let mut known = self.challenges.0.write().unwrap_or_else(PoisonError::into_inner);
        for token in &self.tokens {
            known.remove(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_posted_tokens_are_answered() {
        let challenges = Challenges::default();
        let ask = |line: &str| challenges.answer(line.as_bytes());
        let mut posted = challenges.post();
        posted.add("token", "token.print");
        let asked = "GET /.well-known/acme-challenge/token HTTP/1.1\r\n";
        assert_eq!(ask(asked).as_deref(), Some("token.print"));
        assert_eq!(ask("GET /.well-known/acme-challenge/token2 HTTP/1.1\r\n"), None);
        assert_eq!(ask("GET /.well-known/acme-challenge/ HTTP/1.1\r\n"), None);
        assert_eq!(ask("GET / HTTP/1.1\r\n"), None);
        drop(posted);
        assert_eq!(ask(asked), None);
    }
}
