-- Percentiles that wrk itself does not print, in milliseconds.
function done(summary, latency, requests)
  for _, percent in ipairs({50, 90, 99, 99.9}) do
    print(string.format("percentile %g %.3f", percent, latency:percentile(percent) / 1000))
  end
end
