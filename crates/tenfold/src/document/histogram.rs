//! A histogram as it is kept and exchanged: HdrHistogram's own compressed form (V2, base64), which
//! its tools in every language read.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::de::Error;
use serde::{Deserialize, Serialize};

/// Times in microseconds. A few hundred bytes, where the histogram itself takes 190 KB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EncodedHistogram(Option<String>);

impl EncodedHistogram {
    pub fn of(micros: &Histogram<u64>) -> EncodedHistogram {
        let mut bytes = Vec::new();
        let encoded = V2DeflateSerializer::new().serialize(micros, &mut bytes);
        // Bytes in memory can always be written, and the bounds are those of every histogram here.
        EncodedHistogram(
            (!micros.is_empty() && encoded.is_ok()).then(|| BASE64_STANDARD.encode(bytes)),
        )
    }

    /// With the bounds that all of them share, so that they can be added up.
    pub fn histogram(&self) -> Histogram<u64> {
        self.0
            .as_deref()
            .and_then(decoded)
            .unwrap_or_else(|| load::Histogram::new().counts().clone())
    }
}

impl<'de> Deserialize<'de> for EncodedHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<EncodedHistogram, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        match text.as_deref().map(decoded) {
            Some(None) => {
                Err(D::Error::custom("not a histogram in HdrHistogram's compressed form"))
            }
            _ => Ok(EncodedHistogram(text)),
        }
    }
}

fn decoded(text: &str) -> Option<Histogram<u64>> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let given = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).ok()?;
    // Its bounds are whatever its writer had.
    let mut ours = load::Histogram::new().counts().clone();
    for at in given.iter_recorded() {
        ours.saturating_record_n(at.value_iterated_to(), at.count_at_value());
    }
    Some(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_json() {
        let mut times = load::Histogram::new();
        for ms in [1, 2, 2, 3_600_000] {
            times.record(std::time::Duration::from_millis(ms));
        }
        let counts = EncodedHistogram::of(times.counts());
        let json = serde_json::to_string(&counts).unwrap();
        assert!(json.starts_with("\"HISTF") && json.len() < 100, "{json}");
        let back: EncodedHistogram = serde_json::from_str(&json).unwrap();
        assert_eq!(&back.histogram(), times.counts());
        assert_eq!(serde_json::to_string(&EncodedHistogram::default()).unwrap(), "null");
        assert!(EncodedHistogram::default().histogram().is_empty());
        assert!(serde_json::from_str::<EncodedHistogram>("\"HISTF\"").is_err());
    }
}
