//! The token that proves who asks from elsewhere. It is no cookie: a browser sends those to every port of a host,
//! and so to the app under test.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use axum::http::HeaderValue;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use crate::store::state_dir;

/// 256 bits as hexadecimal digits.
#[derive(Debug)]
pub struct Token {
    digits: String,
    path: PathBuf,
    /// Since when, and how many wrong ones came.
    misses: Mutex<(Instant, u32)>,
}

/// What a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Right,
    Wrong,
    /// Wrong, as many others were lately.
    Guessed,
}

/// How long the answer to a guess takes.
pub const DELAY: Duration = Duration::from_secs(1);
/// So many wrong ones within a minute are guesses.
const FREE_MISSES: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
const DIGITS: usize = 64;
const FILE: &str = "admin.token";

impl Token {
    /// The token of this user, which stays the same, so that a scraper can be told of it. Only the user can read
    /// its file.
    pub fn kept() -> anyhow::Result<Token> {
        Token::at(&state_dir::directory()?.join(FILE))
    }

    fn at(path: &Path) -> anyhow::Result<Token> {
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let digits = match created {
            Ok(mut file) => {
                let digits = random()?;
                writeln!(file, "{digits}").map(|()| digits)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                std::fs::read_to_string(path).map(|text| text.trim().to_owned())
            }
            Err(error) => Err(error),
        };
        let place = path.display();
        let digits = digits.with_context(|| {
            format!("cannot keep the token of the page in {place}: make it readable, or set TENFOLD_STATE_DIR")
        })?;
        let is_whole =
            digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure!(is_whole, "{place} holds no token: remove it, and a new one will be made");
        Ok(Token { digits, path: path.to_owned(), misses: Mutex::new((Instant::now(), 0)) })
    }

    /// As it stands in the URL's fragment, which a browser sends to nobody.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compares in the same time wherever a difference is.
    pub fn check(&self, authorization: Option<&HeaderValue>) -> Claim {
        let shown = authorization.and_then(|value| value.as_bytes().split_at_checked(7));
        let is_right = shown.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"bearer ")
                && bool::from(token.trim_ascii().ct_eq(self.digits.as_bytes()))
        });
        if is_right {
            return Claim::Right;
        }
        // Who shows none has not guessed.
        if authorization.is_none() {
            return Claim::Wrong;
        }
        let mut misses = self.misses.lock().unwrap_or_else(PoisonError::into_inner);
        if misses.0.elapsed() > MINUTE {
            *misses = (Instant::now(), 0);
        }
        misses.1 += 1;
        if misses.1 > FREE_MISSES { Claim::Guessed } else { Claim::Wrong }
    }
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0_u8; DIGITS / 2];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| anyhow!("the system gives no random numbers for a token: start it again"))?;
    Ok(bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn claim(token: &Token, shown: &str) -> Claim {
        token.check(Some(&shown.parse().unwrap()))
    }

    #[test]
    fn a_token_is_kept_for_its_user_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let token = Token::at(&path).unwrap();
        assert_eq!(token.digits().len(), 64);
        assert_eq!(Token::at(&path).unwrap().digits(), token.digits());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(Token::at(&path).unwrap_err().to_string().contains("remove it"));
    }

    #[test]
    fn wrong_tokens_are_guesses_after_ten_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let token = Token::at(&directory.path().join(FILE)).unwrap();
        let right = format!("Bearer {}", token.digits());
        let claims: Vec<Claim> = (0..11).map(|_| claim(&token, "Bearer 00")).collect();
        assert!(claims[..10].iter().all(|claim| *claim == Claim::Wrong));
        assert_eq!(claims[10], Claim::Guessed);
        assert_eq!((token.check(None), claim(&token, &right)), (Claim::Wrong, Claim::Right));
        assert_eq!(claim(&token, token.digits()), Claim::Guessed);
    }
}
