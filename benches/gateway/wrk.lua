-- What wrk counted, as one line of JSON behind its own report.
done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '{"bytes":%d,"requests":%d,"duration_us":%d,"failed":%d,"status":%d,"p50_us":%d,"p99_us":%d}\n',
        summary.bytes, summary.requests, summary.duration,
        errors.connect + errors.read + errors.write + errors.timeout, errors.status,
        latency:percentile(50), latency:percentile(99)))
end
