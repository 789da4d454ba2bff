//! Statistics of measurements: means, differences and intervals.
//!
//! - [`interval`]: how sure a mean is, from windows.
//! - [`bootstrap`]: how sure any figure of one run is.
//! - [`difference`]: by how much two means differ.
//! - [`comparison`]: whether two sides of an experiment differ.
//! - [`regression`]: a line through measurements.
//! - [`resampling`]: the interval of a prediction from draws of its inputs.

pub mod bootstrap;
pub mod comparison;
pub mod difference;
pub mod interval;
pub mod regression;
pub mod resampling;
