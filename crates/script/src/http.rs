//! Cookies, the server that a script talks to, and redirects.

pub(crate) mod cookie_date;
pub(crate) mod cookies;
pub(crate) mod origin;
pub(crate) mod redirect;
