//! Values in `tenfold.toml` as people write them, read into validated types.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use balancer::Slots;
use fleet::Cpus;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::quantity;

/// A table, or its most important value alone as a string.
#[derive(Debug)]
pub struct Short<T>(pub T);

/// A string that is read as something else.
pub fn parsed<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(from)?.parse().map(Some).map_err(Error::custom)
}

/// A list of them.
pub fn parsed_list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    struct Item<T>(T);
    // An error of a visitor, unlike one that comes after it, has the place of the item.
    impl<T: FromStr<Err: Display>> Visitor<'_> for Item<PhantomData<T>> {
        type Value = Item<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Item<T>, E> {
            text.parse().map(Item).map_err(E::custom)
        }
    }
    impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Item<T> {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_str(Item(PhantomData))
        }
    }
    Ok(Vec::<Item<T>>::deserialize(from)?.into_iter().map(|Item(item)| item).collect())
}

/// Names of hosts.
pub fn host_names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    let names = names.iter().map(|name| quantity::host_name(name)).collect::<Result<_, _>>();
    names.map_err(Error::custom)
}

const TIME: &str = "a time, as in \"200ms\" or 30 for seconds";

/// `"200ms"`, or a number of seconds.
pub fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    number(TIME, quantity::seconds, from)
}

/// Parses seconds that are more than 0 and at most a day.
pub fn positive_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let parse = |text: &str| at_most_a_day(text, quantity::positive_seconds(text)?);
    number(TIME, parse, from)
}

/// A threshold, with its unit: `"200ms"`, more than 0 and at most a day.
pub fn positive_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let parse = |text: &str| at_most_a_day(text, quantity::positive_duration(text)?);
    number("a time with its unit, as in \"200ms\"", parse, from)
}

/// `"0.1%"` or `0.001`.
pub fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    number("a share, as in \"0.1%\"", quantity::share, from)
}

/// A whole number from 1.
pub fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    match usize::deserialize(from)? {
        0 => Err(D::Error::custom("0 is too few: write a whole number from 1")),
        count => quantity::count(&count.to_string()).map(Some).map_err(D::Error::custom),
    }
}

/// A port that something can listen on.
pub fn port<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
    let port = u32::deserialize(from)?;
    quantity::port(&port.to_string()).map(Some).map_err(D::Error::custom)
}

/// Requests a second, more than 0.
pub fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let rate = f64::deserialize(from)?;
    quantity::rate(&rate.to_string()).map(Some).map_err(D::Error::custom)
}

/// `8` or `"auto"`.
pub fn slots<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Slots>, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = Slots;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of slots, as in 8 or \"auto\"")
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<Slots, E> {
            quantity::slots(&value.to_string()).map_err(E::custom)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Slots, E> {
            quantity::slots(text).map_err(E::custom)
        }
    }
    from.deserialize_any(Number).map(Some)
}

/// `16384` or `"16KiB"`.
pub fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = u64;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of bytes, as in 16384 or \"16KiB\"")
        }
        fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
            u64::try_from(value).map_err(|_| E::custom("a size is not negative: write 0 or more"))
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            quantity::bytes(text).map_err(E::custom)
        }
    }
    from.deserialize_any(Bytes).map(Some)
}

/// `0.5` or `"0.5"`: cores.
pub fn cpus<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cpus>, D::Error> {
    number("a number of cores, as in 0.5", quantity::cpus, from)
}

/// `"20MB"`: an instance's memory.
pub fn memory<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    number("a size, as in \"20MB\"", quantity::memory, from)
}

fn at_most_a_day(text: &str, time: Duration) -> Result<Duration, String> {
    match time > balancer::Timeouts::MAX {
        true => Err(format!("`{text}` is more than a day: write at most 24h")),
        false => Ok(time),
    }
}

/// A number, bare or as text with what makes it a quantity.
struct Number<P> {
    expecting: &'static str,
    parse: P,
}

impl<T, P: Fn(&str) -> Result<T, String>> Visitor<'_> for Number<P> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }
    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

fn number<'de, D: Deserializer<'de>, T>(
    expecting: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
    from: D,
) -> Result<Option<T>, D::Error> {
    from.deserialize_any(Number { expecting, parse }).map(Some)
}

impl<'de, T> Deserialize<'de> for Short<T>
where
    T: Deserialize<'de> + FromStr<Err: Display>,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + FromStr<Err: Display>> Visitor<'de> for Either<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a table")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        from.deserialize_any(Either(PhantomData)).map(Short)
    }
}
