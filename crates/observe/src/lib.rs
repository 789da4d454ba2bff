//! What the machine and processes do: samples of CPU, waiting, memory and pressure.
