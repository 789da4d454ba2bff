//! A second reader of HTTP/1.1 for what the balancer writes: slow, plain, by the letter of RFC 9112,
//! over whole messages. It shares no code with the first reader, so that both do not make the same
//! mistake.

/// A message header.
#[derive(Debug)]
pub struct Head<'b> {
    /// The start line's three parts.
    pub start: [&'b [u8]; 3],
    /// Names in lower case.
    pub fields: Vec<(String, &'b [u8])>,
    /// Bytes of the header, including its empty line.
    pub len: usize,
}

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// No body.
    Empty,
    /// This many bytes, at least 1.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Until the end of the connection.
    UntilClose,
}

/// A complete body.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    /// Without framing.
    pub content: Vec<u8>,
    /// Names in lower case.
    pub trailers: Vec<String>,
    /// Bytes including framing.
    pub len: usize,
}

/// Reads a header. `None` if it is incomplete.
pub fn head(bytes: &[u8]) -> Result<Option<Head<'_>>, String> {
    let Some((line, mut at)) = line(bytes, 0)? else { return Ok(None) };
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let mut part = || parts.next().ok_or_else(|| format!("start line {}", line.escape_ascii()));
    let start = [part()?, part()?, part()?];
    let Some((fields, len)) = fields(bytes, &mut at)? else { return Ok(None) };
    Ok(Some(Head { start, fields, len }))
}

/// Reads a complete body from the start of `bytes`. `None` if it goes on.
pub fn body(framing: Body, bytes: &[u8]) -> Result<Option<Whole>, String> {
    match framing {
        Body::Empty => Ok(Some(Whole { content: Vec::new(), trailers: Vec::new(), len: 0 })),
        Body::Length(length) if length <= bytes.len() as u64 => {
            let len = usize::try_from(length).map_err(|e| e.to_string())?;
            Ok(Some(Whole { content: bytes[..len].to_vec(), trailers: Vec::new(), len }))
        }
        Body::Length(_) | Body::UntilClose => Ok(None),
        Body::Chunked => chunks(bytes),
    }
}

/// Reads chunks without extensions, because the balancer writes none.
pub fn chunks(bytes: &[u8]) -> Result<Option<Whole>, String> {
    let (mut at, mut content) = (0, Vec::new());
    loop {
        let Some((size, data)) = line(bytes, at)? else { return Ok(None) };
        let text = std::str::from_utf8(size).map_err(|e| e.to_string())?;
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("chunk size {text:?}"));
        }
        let size = usize::from_str_radix(text, 16).map_err(|e| e.to_string())?;
        at = data;
        if size == 0 {
            let Some((fields, len)) = fields(bytes, &mut at)? else { return Ok(None) };
            let trailers = fields.into_iter().map(|(name, _)| name).collect();
            return Ok(Some(Whole { content, trailers, len }));
        }
        let Some(end) = at.checked_add(size).filter(|end| end + 2 <= bytes.len()) else {
            return Ok(None);
        };
        content.extend_from_slice(&bytes[at..end]);
        if &bytes[end..end + 2] != b"\r\n" {
            return Err("no CR LF after a chunk".into());
        }
        at = end + 2;
    }
}

impl<'b> Head<'b> {
    /// The values of all fields with this name, which is in lower case.
    pub fn values(&self, name: &str) -> Vec<&'b [u8]> {
        self.fields.iter().filter(|field| field.0 == name).map(|field| field.1).collect()
    }

    /// Checks a proxy's request to a server. Returns the framing of its body.
    pub fn request_body(&self) -> Result<Body, String> {
        let [method, target, version] = self.start;
        if method.is_empty() || !method.iter().all(is_token) {
            return Err(format!("method {}", method.escape_ascii()));
        }
        if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
            return Err(format!("target {}", target.escape_ascii()));
        }
        if version != b"HTTP/1.1" {
            return Err(format!("version {}", version.escape_ascii()));
        }
        if self.values("host").len() != 1 {
            return Err(format!("{} Host fields", self.values("host").len()));
        }
        match self.framing()? {
            Body::UntilClose => Ok(Body::Empty),
            body => Ok(body),
        }
    }

    /// Checks a proxy's answer to a client. Returns the framing of its body.
    pub fn response_body(&self, to_head: bool) -> Result<Body, String> {
        let [version, status, _] = self.start;
        if version != b"HTTP/1.1" || status.len() != 3 || !status.iter().all(u8::is_ascii_digit) {
            return Err(format!("status line {:?}", self.start.map(<[u8]>::escape_ascii)));
        }
        let framing = self.framing()?;
        let bodiless = to_head || status[0] == b'1' || status == b"204" || status == b"304";
        Ok(if bodiless { Body::Empty } else { framing })
    }

    /// RFC 9112 6.3, for a message that gives its framing once.
    fn framing(&self) -> Result<Body, String> {
        let (lengths, codings) = (self.values("content-length"), self.values("transfer-encoding"));
        match (&lengths[..], &codings[..]) {
            ([], []) => Ok(Body::UntilClose),
            ([], [b"chunked"]) => Ok(Body::Chunked),
            ([length], []) => {
                let text = std::str::from_utf8(length).map_err(|e| e.to_string())?;
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let length = text.parse().map_err(|_| format!("length {text}"))?;
                match (digits, length) {
                    (false, _) => Err(format!("length {text}")),
                    (true, 0) => Ok(Body::Empty),
                    (true, length) => Ok(Body::Length(length)),
                }
            }
            _ => Err(format!("{} lengths and {} codings", lengths.len(), codings.len())),
        }
    }
}

/// The line at `at`, and where the next one begins.
fn line(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, String> {
    let Some(len) = bytes[at..].iter().position(|&byte| byte == b'\r' || byte == b'\n') else {
        return Ok(None);
    };
    match &bytes[at + len..] {
        [b'\r', b'\n', ..] => Ok(Some((&bytes[at..at + len], at + len + 2))),
        [b'\r'] => Ok(None),
        _ => Err(format!("bare CR or LF after {}", bytes[at..at + len].escape_ascii())),
    }
}

type Fields<'b> = Vec<(String, &'b [u8])>;

/// Field lines up to the empty line, and where that ends.
fn fields<'b>(bytes: &'b [u8], at: &mut usize) -> Result<Option<(Fields<'b>, usize)>, String> {
    let mut fields = Vec::new();
    loop {
        let Some((line, next)) = line(bytes, *at)? else { return Ok(None) };
        *at = next;
        if line.is_empty() {
            return Ok(Some((fields, next)));
        }
        let wrong = || format!("field line {}", line.escape_ascii());
        let colon = line.windows(2).position(|pair| pair == b": ").ok_or_else(wrong)?;
        let (name, value) = (&line[..colon], &line[colon + 2..]);
        let text = value.iter().all(|&byte| byte == b'\t' || byte >= b' ' && byte != 0x7f);
        if name.is_empty() || !name.iter().all(is_token) || !text || value != value.trim_ascii() {
            return Err(wrong());
        }
        fields.push((String::from_utf8_lossy(name).to_lowercase(), value));
    }
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte)
}
