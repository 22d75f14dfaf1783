#!/usr/bin/env bash
# Records real HTTP traffic: nginx on one side of a veth pair, wrk, curl and h2load on the other, tcpdump
# at the server.
#
#   record_http.sh OUT.pcap PACKETS [MODE]
#
#   mix   wrk with a weighted mix of methods, codes, agents, hosts and bodies of 0.2 to 200 KB, and
#         curl beside it for HEAD and "Expect: 100-continue" (wrk cannot parse those); stops
#         after PACKETS packets, so a few requests are unanswered at the cut
#   pipelined  as mix, but wrk sends six requests at once and waits for the six responses, and some of
#         their targets are up to 6,000 characters long
#   lossy as mix, with such targets, over a line that loses 1 % of the segments in each direction and lets 2 % of
#         the others come 3 ms late (`linkweir-lab line`; LINKWEIR_LAB names the program, where it is not on the path)
#   troubled  pipelined over that line
#   tiny  requests and responses of one segment each, three on a connection, which makes about five
#         packets per transaction: every packet with payload carries a start line
#   dense the same without an end to the connections: nearly every packet is a start line
#   demo  a fixed script of requests spread over some seconds, by curl only, every one answered and
#         PACKETS ignored; fails if a packet was lost, so that the access log is the exact truth
#   uris  curl asks for 800 URIs of 20 to 60,000 characters, the lengths evenly spread on a
#         logarithmic scale; as in demo PACKETS is ignored and the access log is the exact truth
#   h2    h2load, HTTP/2 in clear: 20 connections of at most 100 streams at once, small pages and large ones
#   mix-tls  mix in TLS 1.3, HTTP/1.1
#   tls   as h2 in TLS 1.3, AES-128-GCM, with the large pages alone, so that records are long
#   h2-crowd, tls-crowd  h2load with 10,000 connections that are open at once, each with a request a second;
#         PACKETS is ignored
#
# The default is mix. In the modes tls and tls-crowd OUT.keys is the clients' key log.
#
# Beside OUT.pcap it leaves OUT.access.tsv, nginx's log (columns: the log_format below), and in the
# modes demo and uris OUT.truth.json, its totals.
#
# In the modes lossy and troubled OUT.line.json says what the line did.
#
# Needs nginx, wrk, curl, tcpdump, ip, ethtool, unshare, nsenter; openssl; for HTTP/2 h2load. As root it uses network namespaces;
# as an ordinary user the same inside a user namespace, where the kernel allows that. Nothing outlives
# the script: the namespaces go with the processes, which are ended by process id.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
modes="mix|mix-tls|pipelined|lossy|troubled|tiny|dense|demo|uris|h2|tls|h2-crowd|tls-crowd"
usage="usage: record_http.sh OUT.pcap PACKETS [$modes]"
out=${1:?$usage}
packets=${2:?$usage}
mode=${3:-mix}
case "|$modes|" in *"|$mode|"*) ;; *) echo "$usage" >&2; exit 2 ;; esac

line=
case $mode in lossy | troubled) line=${LINKWEIR_LAB:-linkweir-lab} ;; esac
h2=
case $mode in h2 | tls | h2-crowd | tls-crowd) h2=h2load ;; esac
missing=()
for tool in nginx wrk curl tcpdump ip ethtool unshare nsenter openssl $line $h2; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "record_http.sh: missing: ${missing[*]} (scripts/setup.sh bench installs them)" >&2
    exit 2
fi

# The server's namespace is the script's own: enter it first.
if [ -z "${LINKWEIR_RECORD_INSIDE:-}" ]; then
    flags=(--net)
    if [ "$(id -u)" -ne 0 ]; then
        # Our own user id with capabilities: tcpdump and nginx change users when they see root.
        flags+=(--user --map-current-user --keep-caps)
        if ! unshare "${flags[@]}" true 2>/dev/null; then
            echo "record_http.sh: this kernel gives ordinary users no network namespace; run as root" >&2
            exit 2
        fi
    fi
    LINKWEIR_RECORD_INSIDE=1 exec unshare "${flags[@]}" -- bash "$0" "$@"
fi

scripted=
case $mode in demo | uris | h2-crowd | tls-crowd) scripted=yes ;; esac

work=$(mktemp -d "${TMPDIR:-/tmp}/record-http.XXXXXX")
children=()
cleanup() {
    trap - EXIT INT TERM HUP
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    for child in "${children[@]}"; do wait "$child" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

server4=10.80.0.1
server6=fd00:80::1
# ---- the wire ------------------------------------------------------------------------------------
unshare --net -- sleep infinity &
holder=$!
children+=("$holder")
client() { nsenter --target "$holder" --net -- "$@"; }
for _ in $(seq 50); do # until the child has left our namespace
    [ "$(readlink "/proc/$holder/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.1
done
if [ -z "$line" ]; then
    ip link add srv0 type veth peer name cli0
    ip link set cli0 netns "$holder"
else # the line joins the other ends, which have no addresses
    ip link add srv0 type veth peer name line0
    ip link add line1 type veth peer name cli0
    ip link set cli0 netns "$holder"
    for end in line0 line1; do
        ethtool -K $end tx off rx off sg off tso off gso off gro off >/dev/null 2>&1 || true
        echo 1 >"/proc/sys/net/ipv6/conf/$end/disable_ipv6"
        ip link set $end mtu 1500 up
    done
fi
plain() { # frames as they are on a cable: no segmentation offload, real checksums
    "$@" ip link set lo up
}
plain env
plain client
ethtool -K srv0 tx off rx off sg off tso off gso off gro off >/dev/null 2>&1 || true
client ethtool -K cli0 tx off rx off sg off tso off gso off gro off >/dev/null 2>&1 || true
ip addr add $server4/24 dev srv0
ip -6 addr add $server6/64 dev srv0 nodad
for i in $(seq 11 18); do client ip addr add "10.80.0.$i/24" dev cli0; done
client ip -6 addr add fd00:80::11/64 dev cli0 nodad
ip link set srv0 mtu 1500 up
client ip link set cli0 mtu 1500 up
client sh -c 'echo "10000 65000" > /proc/sys/net/ipv4/ip_local_port_range' 2>/dev/null || true

if [ -n "$line" ]; then
    "$line" line --between line0 --and line1 --loss 0.01 --reorder 0.02 --delay 3ms --latency 200us \
        --summary "$work/line.json" --quiet &
    line_process=$!
    children+=("$line_process")
fi

# ---- the server ----------------------------------------------------------------------------------
mkdir -p "$work/www/pages" "$work/www/media" "$work/www/api" "$work/tmp"
fill() { head -c "$2" /dev/urandom | base64 -w 72 | head -c "$2" >"$work/www/$1" || true; }
size_index=0
if [ -n "$scripted" ]; then
    sizes="200 260 340 430 560 720 930 1200 1550 2000 2600 3400 4400 5700 7400 9600"
elif [ "$mode" = tls ]; then
    sizes="20000 24000 29000 35000 42000 50000 60000 72000 86000 104000 125000 150000 180000 216000 260000 310000"
else
    sizes="200 400 750 1100 1800 2900 4500 7200 11500 18500 29500 47000 75500 120000 160000 200000"
fi
for size in $sizes; do
    fill "pages/p$size_index.html" "$size"
    fill "media/m$size_index.jpg" $((size * 2 / 3))
    size_index=$((size_index + 1))
done
for i in 1 2 3 4 5; do printf '{"item":%d,"stock":%d}\n' "$i" $((i * 7)) >"$work/www/api/item$i.json"; done

port=80 scheme=http listen= tls= probe=()
case $mode in
h2 | h2-crowd) listen="http2" probe=(--http2-prior-knowledge) ;;
mix-tls | tls | tls-crowd)
    port=443 scheme=https listen=ssl probe=(-k)
    [ "$mode" = mix-tls ] || listen="ssl http2"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=www.example.test \
        -keyout "$work/key.pem" -out "$work/cert.pem" 2>"$work/openssl.log"
    tls="ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem; ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;"
    ;;
esac
if [ -n "$h2" ]; then
    ulimit -n "$(ulimit -Hn)"
    echo 16384 >/proc/sys/net/core/somaxconn
fi
cat >"$work/nginx.conf" <<CONF
user root root;
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/error.log crit;
events { worker_connections $([ -n "$h2" ] && echo 16000 || echo 2048); }
http {
    types { text/html html; image/jpeg jpg; application/json json; }
    default_type text/plain;
    log_format truth escape=json '\$msec\t\$remote_addr\t\$remote_port\t\$request_method\t\$status\t\$http_expect\t\$http_host\t\$http_user_agent\t\$request_uri';
    access_log $work/access.tsv truth buffer=256k;
    keepalive_requests $(case $mode in tiny) echo 3 ;; dense | h2 | tls | *-crowd) echo 1000000 ;; *) echo 150 ;; esac);
    keepalive_timeout 30;
    sendfile off;
    client_max_body_size 2m;
    large_client_header_buffers 4 64k;
    client_body_temp_path $work/tmp/1; proxy_temp_path $work/tmp/2; fastcgi_temp_path $work/tmp/3;
    uwsgi_temp_path $work/tmp/4; scgi_temp_path $work/tmp/5;
    limit_req_zone \$server_name zone=slow:1m rate=60r/s;
    server {
        listen $server4:$port $listen backlog=16384;
        listen [$server6]:$port $listen;
        $tls
        server_name _;
        root $work/www;
        location /form { return 200 "stored\n"; }
        location /moved/ { return 302 /pages/p0.html; }
        location /fresh/ { return 304; }
        location /nothing { return 204; }
        location /admin { return 403 "forbidden\n"; }
        location /crash { return 500 "internal error\n"; }
        location /overload { return 503 "try later\n"; }
        location /short { return 200 "ok\n"; }
        location /slow/ { limit_req zone=slow burst=40; try_files /pages/p3.html =404; }
    }
}
CONF
nginx -e "$work/error.log" -p "$work" -c "$work/nginx.conf" &
server=$!
children+=("$server")
for _ in $(seq 50); do
    client curl -s "${probe[@]}" -o /dev/null "$scheme://$server4/short" && break
    kill -0 "$server" 2>/dev/null || { echo "record_http.sh: nginx did not start" >&2; cat "$work/error.log" >&2; exit 3; }
    sleep 0.1
done
client curl -s "${probe[@]}" -o /dev/null "$scheme://[$server6]/short"
kill -USR1 "$server" # the log buffer goes to the file; what was probed is not part of the truth
sleep 0.3
: >"$work/access.tsv"

# ---- the recorder --------------------------------------------------------------------------------
count=(-c "$packets")
[ -n "$scripted" ] && count=()
# It gets the processor first: what it loses is lost for the truth as well.
priority=(nice -n -15)
[ -z "$("${priority[@]}" true 2>&1)" ] || priority=()
"${priority[@]}" tcpdump -i srv0 -n -s 0 -B 524288 -Z root -w "$work/capture.pcap" "${count[@]}" \
    "tcp port $port" 2>"$work/tcpdump.log" &
recorder=$!
children+=("$recorder")
for _ in $(seq 100); do
    grep -q 'listening on' "$work/tcpdump.log" && break
    kill -0 "$recorder" 2>/dev/null || { cat "$work/tcpdump.log" >&2; exit 3; }
    sleep 0.1
done

# ---- the clients ---------------------------------------------------------------------------------
cat >"$work/mix.lua" <<'LUA'
local agents = {
  "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Safari/537.36",
  "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_6) AppleWebKit/605.1.15 Version/17.6 Safari/605.1.15",
  "curl/7.88.1", "okhttp/4.12.0", "Go-http-client/1.1",
}
local hosts = { "www.example.test", "media.example.test", "api.example.test", "intranet.example.test" }
local form = string.rep("key=some+value&", 30)
local upload = string.rep("0123456789abcdef", 230)
-- weight, method, path, body; in a path, %f is a file number (small ones more often), %d any number
local mix = {
  { 540, "GET", "/pages/p%f.html?session=%d" }, { 190, "GET", "/media/m%f.jpg" },
  { 70, "GET", "/api/item%i.json" }, { 60, "POST", "/form", form }, { 10, "POST", "/form", upload },
  { 10, "POST", "/pages/p1.html", "x=1" }, { 30, "GET", "/fresh/style.css" },
  { 25, "GET", "/lost/%d.html" }, { 20, "GET", "/moved/%d" }, { 10, "GET", "/crash" },
  { 10, "GET", "/overload" }, { 8, "GET", "/admin" }, { 7, "GET", "/nothing" },
  { 10, "OPTIONS", "/pages/p0.html" },
}
local long = { 40, "GET", "/pages/p%f.html?q=%l" }
local depth = 1
local tiny = { { 400, "GET", "/nothing" }, { 300, "GET", "/fresh/%d" }, { 300, "GET", "/short" } }
local chosen, total, threads = mix, 0, 0
function setup(thread) thread:set("number", threads); threads = threads + 1 end
function init(args)
  math.randomseed(77 + number)
  local mode = args[1]
  if mode == "tiny" or mode == "dense" then chosen = tiny end
  if mode ~= "mix" and chosen == mix then table.insert(mix, long) end
  if mode == "pipelined" or mode == "troubled" then depth = 6 end
  for _, row in ipairs(chosen) do total = total + row[1] end
end
local function one()
  local pick, row = math.random(total), nil
  for _, candidate in ipairs(chosen) do
    row = candidate
    pick = pick - candidate[1]
    if pick <= 0 then break end
  end
  local file = math.floor(16 * math.random() ^ 1.7)
  local path = row[3]:gsub("%%f", file):gsub("%%d", math.random(90000)):gsub("%%i", math.random(5))
  -- As many short ones as long ones, on a logarithmic scale.
  path = path:gsub("%%l", function() return string.rep("p+", math.floor(5 * 600 ^ math.random())) end)
  local headers = { ["Host"] = hosts[math.random(#hosts)], ["User-Agent"] = agents[math.random(#agents)] }
  if chosen == mix then
    headers["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    headers["Accept-Language"] = "en-GB,en;q=0.7,es;q=0.3"
    headers["Accept-Encoding"] = "gzip, deflate"
    headers["Cookie"] = "visit=" .. math.random(10 ^ 9) .. "; layout=wide; consent=yes"
    if row[4] then headers["Content-Type"] = "application/x-www-form-urlencoded" end
  end
  return wrk.format(row[2], path, headers, row[4])
end
function request()
  local all = {}
  for i = 1, depth do all[i] = one() end
  return table.concat(all)
end
LUA

stop_recorder() {
    sleep 2 # the kernel hands over what it holds once a second
    kill -INT "$recorder"
}

flood() { # until the recorder has its packets; short rounds, so that connections open and close too
    local deadline=$((SECONDS + 60 + packets / 20000))
    case $mode in mix | mix-tls | pipelined | lossy | troubled)
        (
            while kill -0 "$recorder" 2>/dev/null; do
                urls=()
                for _ in $(seq 30); do urls+=("$scheme://$server4/pages/p$((RANDOM % 16)).html"); done
                source="10.80.0.$((11 + RANDOM % 8))"
                client timeout 10 curl -s "${probe[@]}" -I --interface "$source" "${urls[@]}" >/dev/null || true
                client timeout 10 curl -s "${probe[@]}" -H 'Expect: 100-continue' --interface "$source" \
                    --data-binary "@$work/www/pages/p6.html" "$scheme://$server4/form" >/dev/null || true
            done
        ) &
        children+=("$!")
        ;;
    esac
    while kill -0 "$recorder" 2>/dev/null && [ $SECONDS -lt $deadline ]; do
        client timeout 15 wrk -t 2 -c 40 -d 4s --timeout 4s -s "$work/mix.lua" "$scheme://$server4/" "${mode%-tls}" \
            >"$work/wrk.log" 2>&1 || true
    done
}

script_of() { # a curl config: one kept-alive connection of client $1 in round $2
    local client=$1 round=$2 i target address=$server4 agent host options
    local agents=(
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1"
        "curl/7.88.1" "okhttp/4.12.0" "monitor probe | every 5 s"
    )
    local hosts=(www.example.test www.example.test media.example.test api.example.test shop.example.test)
    agent=${agents[$((client % 5))]}
    [ "$client" -eq 18 ] && address="[$server6]"
    for i in $(seq 0 9); do
        host=${hosts[$(((client + i) % 5))]}
        options=""
        case $(((client * 7 + round * 3 + i) % 20)) in
        0 | 1 | 2 | 3) target="/pages/p$(((client * round + i) % 16)).html" ;;
        4 | 5 | 6) target="/pages/p$(((i * i + round) % 9)).html?session=$((client * 1000 + round * 10 + i))" ;;
        7 | 8) target="/media/m$(((round + i) % 12)).jpg" ;;
        9) target="/api/item$((i % 5 + 1)).json" ;;
        10) target="/form" options='data = "name=visitor&city=Madrid&text=a+longer+line+of+words"' ;;
        11) target="/form" options="data-binary = \"@$work/www/pages/p10.html\"
header = \"Expect: 100-continue\"" ;;
        12) target="/pages/p$i.html" options="head" ;;
        13) target="/pages/p0.html" options='request = "OPTIONS"' ;;
        14) target="/lost/page$((client * i)).html" ;;
        15) target="/fresh/style.css" options='header = "If-None-Match: \"v1\""' ;;
        16) target="/moved/$i" ;;
        17) target=$([ $((round % 2)) -eq 0 ] && echo /crash || echo /overload) ;;
        18) target=$([ $((i % 2)) -eq 0 ] && echo /nothing || echo /admin) ;;
        *) target="/slow/report?part=$i" ;;
        esac
        [ "$i" -gt 0 ] && echo next
        printf 'url = "http://%s%s"\noutput = "/dev/null"\nsilent\nheader = "Host: %s"\nuser-agent = "%s"\n' \
            "$address" "$target" "$host" "$agent"
        [ "$client" -ne 18 ] && printf 'interface = "10.80.0.%d"\n' "$client"
        [ -n "$options" ] && printf '%s\n' "$options"
    done
    return 0
}

# h2load sends what a browser's request has of fields, and asks for all pages in turns.
asks() {
    local i
    for i in $(seq 0 15); do
        if [ "$mode" = h2 ]; then
            printf '%s://%s/api/item%d.json\n%s://%s/fresh/%d.css\n' "$scheme" "$server4" $((i % 5 + 1)) "$scheme" "$server4" "$i"
            [ "$i" -gt 9 ] && continue
        fi
        printf '%s://%s/pages/p%d.html\n' "$scheme" "$server4" "$i"
    done
}
heavy() {
    client env SSLKEYLOGFILE="$work/keys" timeout 100 h2load "$@" -H 'accept-language: en-GB,en;q=0.7,es;q=0.3' \
        -H 'user-agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0' \
        -H 'cookie: visit=4711; layout=wide; consent=yes' >"$work/h2load.log" 2>&1
}

streams() { # until the recorder has its packets
    local deadline=$((SECONDS + 60 + packets / 20000))
    asks >"$work/asks"
    while kill -0 "$recorder" 2>/dev/null && [ $SECONDS -lt $deadline ]; do
        heavy -n 4000 -c 20 -m 100 -i "$work/asks" || true
    done
}

crowd() {
    local seconds=8
    # Ten thousand handshakes take some seconds.
    [ "$mode" = h2-crowd ] || seconds=20
    heavy -D "$seconds" -c 10000 -m 1 --rps 1 "$scheme://$server4/short" || { cat "$work/h2load.log" >&2; exit 3; }
    stop_recorder
}

screenplay() {
    local round source batch
    for round in $(seq 0 9); do
        batch=()
        for source in $(seq 11 18); do
            script_of "$source" "$round" >"$work/script-$source"
            client curl -s -K "$work/script-$source" >/dev/null &
            batch+=("$!")
        done
        wait "${batch[@]}"
        sleep 0.$((2 + round % 5))
    done
    stop_recorder
}

long_uris() {
    local source batch=()
    for source in $(seq 11 18); do
        # A kept-alive connection of 100 requests; the lengths of all eight interleave.
        awk -v first="$((source - 11))" -v address="$server4" -v source="10.80.0.$source" 'BEGIN {
            for (i = 0; i < 100; i++) {
                len = int(20 * exp(log(3000) * (i * 8 + first) / 799) + 0.5)
                uri = "/pages/p" (i % 16) ".html?q="
                while (length(uri) < len) uri = uri "part" (i * 31 + length(uri)) "+"
                uri = substr(uri, 1, len)
                if (i) print "next"
                printf "url = \"http://%s%s\"\noutput = \"/dev/null\"\nsilent\n", address, uri
                printf "header = \"Host: www.example.test\"\ninterface = \"%s\"\n", source
            }
        }' >"$work/uris-$source"
        client curl -s -K "$work/uris-$source" >/dev/null &
        batch+=("$!")
    done
    wait "${batch[@]}"
    stop_recorder
}

case $mode in
demo) screenplay ;;
uris) long_uris ;;
h2-crowd | tls-crowd) crowd ;;
h2 | tls) streams ;;
*) flood ;;
esac
if kill -0 "$recorder" 2>/dev/null && [ -z "$scripted" ]; then
    echo "record_http.sh: fewer than $packets packets in the time given" >&2
    exit 3
fi
wait "$recorder" || true
kill -USR1 "$server" 2>/dev/null || true # flush the log
sleep 0.3
kill "$server" 2>/dev/null || true
wait "$server" 2>/dev/null || true

if [ -n "$line" ]; then
    kill -INT "$line_process" 2>/dev/null || true
    wait "$line_process" || echo "record_http.sh: the line itself lost frames" >&2
fi
sed 's/^/tcpdump: /' "$work/tcpdump.log" >&2
lost=$(awk '/dropped by kernel/ { print $1 }' "$work/tcpdump.log")
if [ -n "$scripted" ] && [ "${lost:-1}" -ne 0 ]; then
    echo "record_http.sh: the recorder lost ${lost:-some} packets; the log is not the truth" >&2
    exit 3
fi
base=${out%.pcap}
cp "$work/capture.pcap" "$out"
cp "$work/access.tsv" "$base.access.tsv"
[ ! -f "$work/keys" ] || cp "$work/keys" "$base.keys"
[ -z "$line" ] || cp "$work/line.json" "$base.line.json"
if [ -n "$scripted" ]; then
    # The totals of the log, under the names of the summary of `linkweir http`.
    awk -F '\t' -v captured="$(awk '/packets captured/ { print $1 }' "$work/tcpdump.log")" '
        function object(name, values,   line, key, keys, n, i, j, t) {
            n = 0
            for (key in values) keys[++n] = key
            for (i = 2; i <= n; i++) for (j = i; j > 1 && keys[j] < keys[j - 1]; j--) { t = keys[j]; keys[j] = keys[j - 1]; keys[j - 1] = t }
            line = "  \"" name "\": {"
            for (i = 1; i <= n; i++) line = line (i > 1 ? ", " : " ") "\"" keys[i] "\": " values[keys[i]]
            return line " }"
        }
        { methods[$4]++; codes[$5]++; hosts[$7]++; agents[$8]++; paired[$4 " " $5]++; if ($6 != "") interim++ }
        END {
            printf "{\n  \"packets\": %d,\n  \"requests\": %d,\n", captured, NR
            printf "  \"responses\": %d,\n  \"interim_responses\": %d,\n", NR + interim, interim
            printf "  \"transactions\": %d,\n  \"unanswered\": 0,\n  \"orphans\": 0,\n", NR
            print object("methods", methods) ","
            if (interim) codes[100] = interim
            print object("status_codes", codes) ","
            print object("methods_and_codes", paired) ","
            print object("hosts", hosts) ","
            print object("user_agents", agents) "\n}"
        }' "$work/access.tsv" >"$base.truth.json"
fi
echo "$out: $(stat -c %s "$out") bytes; $(wc -l <"$base.access.tsv") requests in $base.access.tsv"
