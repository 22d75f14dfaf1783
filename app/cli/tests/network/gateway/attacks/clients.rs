//! Clients of HTTP as they are installed. Each takes a list of lines `URL FILE`, and writes to each file what it got of its
//! URL, also where that broke off.

use std::path::Path;
use std::process::Command;

use linkweir_testkit::gateway::Place;
use linkweir_testkit::ran::installed;

use super::site::Site;

/// A client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    pub name: &'static str,
    /// Whether every run of the tests has it.
    pub is_of_every_run: bool,
    program: &'static str,
    how: How,
}

#[derive(Debug, Clone, Copy)]
enum How {
    /// Once for each URL, `$0`, and its file, `$1`.
    Each(&'static str),
    /// A program that reads the list, handed over behind this word, and a word for it.
    Program(&'static str, &'static str, &'static str),
    /// A source file of Java, and a word for it.
    Java(&'static str),
}

pub(super) const CLIENTS: [Client; 10] = [
    Client {
        name: "curl",
        is_of_every_run: true,
        program: "curl",
        how: How::Each("exec curl -s -g -m 5 -o \"$1\" \"$0\""),
    },
    Client {
        name: "curl-compressed",
        is_of_every_run: false,
        program: "curl",
        how: How::Each("exec curl -s -g -m 5 --compressed -o \"$1\" \"$0\""),
    },
    Client {
        name: "wget",
        is_of_every_run: true,
        program: "wget",
        how: How::Each("exec wget -q -t 2 --waitretry=0 -T 4 --content-on-error -O \"$1\" \"$0\""),
    },
    Client {
        name: "urllib",
        is_of_every_run: true,
        program: "python3",
        how: How::Program("-c", URLLIB, ""),
    },
    Client {
        name: "requests",
        is_of_every_run: false,
        program: "python3",
        how: How::Program("-c", REQUESTS, ""),
    },
    Client {
        name: "node",
        is_of_every_run: false,
        program: "node",
        how: How::Program("-e", NODE, "http"),
    },
    Client {
        name: "fetch",
        is_of_every_run: false,
        program: "node",
        how: How::Program("-e", NODE, "fetch"),
    },
    Client {
        name: "java",
        is_of_every_run: false,
        program: "java",
        how: How::Java("client"),
    },
    Client {
        name: "java-url",
        is_of_every_run: false,
        program: "java",
        how: How::Java("url"),
    },
    Client {
        name: "chromium",
        is_of_every_run: false,
        program: "python3",
        how: How::Program("-c", CHROMIUM, ""),
    },
];

impl Client {
    /// Whether it is installed.
    pub(super) fn is_there(&self) -> bool {
        let is_whole = match self.how {
            How::Program(_, REQUESTS, _) => Command::new(self.program)
                .args(["-c", "import requests"])
                .output()
                .is_ok_and(|output| output.status.success()),
            How::Program(_, CHROMIUM, _) => installed("chromium").is_some(),
            _ => true,
        };
        is_whole && installed(self.program).is_some()
    }

    /// A command that works off a list.
    pub(super) fn command(&self, site: &Site, list: &Path) -> Command {
        match self.how {
            How::Each(text) => {
                let mut xargs = site.net.command(Place::Client, "xargs");
                xargs
                    .arg("-a")
                    .arg(list)
                    .args(["-P", "4", "-n", "2", "sh", "-c", text]);
                xargs
            }
            How::Program(option, text, word) => {
                let mut program = site.net.command(Place::Client, self.program);
                program.args([option, text]).arg(list).arg(word);
                program
            }
            How::Java(word) => {
                let source = site.put("Client.java", JAVA.as_bytes());
                let mut java = site.net.command(Place::Client, self.program);
                java.arg(source).arg(list).arg(word);
                java
            }
        }
    }
}

const URLLIB: &str = r#"
import sys, urllib.request, urllib.error, http.client
from concurrent.futures import ThreadPoolExecutor

def fetch(line):
    url, path = line.split()
    try:
        try:
            answer = urllib.request.urlopen(url, timeout=4)
        except urllib.error.HTTPError as error:
            answer = error
        with open(path, "wb") as out:
            try:
                while piece := answer.read(16):
                    out.write(piece)
            except http.client.IncompleteRead as error:
                out.write(error.partial)
    except Exception:
        pass

with ThreadPoolExecutor(4) as pool:
    list(pool.map(fetch, open(sys.argv[1])))
"#;

const REQUESTS: &str = r#"
import sys, requests
from concurrent.futures import ThreadPoolExecutor

def fetch(line):
    url, path = line.split()
    try:
        answer = requests.get(url, stream=True, timeout=4)
        with open(path, "wb") as out:
            for piece in answer.iter_content(16):
                out.write(piece)
    except Exception:
        pass

with ThreadPoolExecutor(4) as pool:
    list(pool.map(fetch, open(sys.argv[1])))
"#;

/// A page fetches, and shows what it got.
const CHROMIUM: &str = r#"
import base64, json, subprocess, sys

PAGE = """<pre></pre><script>
const lines = LINES;
const work = async () => {
  while (lines.length) {
    const [url, path] = lines.shift();
    let text = "";
    try {
      const reader = (await fetch(url, { cache: "no-store" })).body.getReader();
      for (let part; !(part = await reader.read()).done; )
        for (const byte of part.value) text += String.fromCharCode(byte);
    } catch {}
    document.querySelector("pre").append(`${path} ${btoa(text)}\\n`);
  }
};
Promise.all([work(), work(), work(), work()]);
</script>"""

listed = sys.argv[1]
with open(listed) as lines, open(listed + ".html", "w") as page:
    page.write(PAGE.replace("LINES", json.dumps([line.split() for line in lines])))
words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-web-security", "--dump-dom"]
words += ["--explicitly-allowed-ports=10080", "--virtual-time-budget=100000000", "--user-data-dir=" + listed + ".profile"]
shown = subprocess.run([*words, "file://" + listed + ".html"], stdout=subprocess.PIPE, timeout=240).stdout.decode()
for line in shown.partition("<pre>")[2].partition("</pre>")[0].splitlines():
    path, _, text = line.partition(" ")
    with open(path, "wb") as out:
        out.write(base64.b64decode(text))
"#;

const NODE: &str = r#"
const fs = require("fs"), http = require("http");
const [list, how] = process.argv.slice(1);
const lines = fs.readFileSync(list, "utf8").trim().split("\n");
process.on("uncaughtException", () => {});

const old = (url, out) => new Promise((end) => {
  const request = http.get(url, { agent: false, timeout: 4000 }, (answer) => {
    answer.on("data", (piece) => fs.writeSync(out, piece));
    answer.on("end", end).on("error", end).on("close", end);
  });
  request.on("error", end).on("close", end).on("timeout", () => request.destroy());
});
const modern = async (url, out) => {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4000) });
  for await (const piece of answer.body) fs.writeSync(out, piece);
};
const work = async () => {
  while (lines.length) {
    const [url, path] = lines.shift().split(" ");
    const out = fs.openSync(path, "w");
    try { await (how === "fetch" ? modern : old)(url, out); } catch {}
    fs.closeSync(out);
  }
};
Promise.all([work(), work(), work(), work()]).then(() => process.exit(0));
"#;

const JAVA: &str = r#"
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.file.*;
import java.time.Duration;
import java.util.concurrent.*;

public class Client {
    static InputStream open(String url, boolean modern) throws Exception {
        if (modern) {
            HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
            HttpRequest request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(4)).build();
            return client.send(request, HttpResponse.BodyHandlers.ofInputStream()).body();
        }
        HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
        connection.setConnectTimeout(4000);
        connection.setReadTimeout(4000);
        try {
            return connection.getInputStream();
        } catch (IOException error) {
            InputStream body = connection.getErrorStream();
            if (body == null) throw error;
            return body;
        }
    }
    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (String line : Files.readAllLines(Path.of(words[0]))) {
            String[] part = line.split(" ");
            pool.submit(() -> {
                try (OutputStream out = new FileOutputStream(part[1])) {
                    InputStream in = open(part[0], words[1].equals("client"));
                    for (int next; (next = in.read()) >= 0; ) out.write(next);
                } catch (Exception | Error error) {
                }
            });
        }
        pool.shutdown();
        pool.awaitTermination(120, TimeUnit.SECONDS);
        System.exit(0);
    }
}
"#;
