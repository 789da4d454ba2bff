//! Accounts that an authority gives out before it is asked for certificates (RFC 8555 7.3.4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use instant_acme::ExternalAccountKey;

use crate::config::acme::ExternalAccount;

impl ExternalAccount {
    /// Reads the key. Returns what is wrong, in one sentence with a remedy.
    pub(crate) fn load(&self) -> Result<ExternalAccountKey, String> {
        let file = self.key.display();
        let text = std::fs::read_to_string(&self.key).map_err(|error| {
            format!("cannot read the key of the ACME account in {file}: {error}; name its file")
        })?;
        let key = URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('='));
        match key {
            Ok(key) if !key.is_empty() => Ok(ExternalAccountKey::new(self.id.clone(), &key)),
            _ => Err(format!(
                "the key of the ACME account in {file} is not base64url; put it there as the authority gave it"
            )),
        }
    }
}
