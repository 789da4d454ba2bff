//! The header fields of a request that the access log tells.

/// The values as they were sent; empty where the request has no such field.
#[derive(Debug, Default)]
pub(crate) struct LoggedFields {
    pub(crate) referer: Vec<u8>,
    pub(crate) user_agent: Vec<u8>,
}

impl LoggedFields {
    pub(crate) fn clear(&mut self) {
        self.referer.clear();
        self.user_agent.clear();
    }

    pub(crate) fn take(&mut self, headers: &[httparse::Header<'_>]) {
        for header in headers {
            match header.name.len() {
                7 if header.name.eq_ignore_ascii_case("referer") => {
                    self.referer.clear();
                    self.referer.extend_from_slice(header.value);
                }
                10 if header.name.eq_ignore_ascii_case("user-agent") => {
                    self.user_agent.clear();
                    self.user_agent.extend_from_slice(header.value);
                }
                _ => {}
            }
        }
    }
}
