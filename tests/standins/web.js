// A server for what boxes send out: says back what it got, streams, takes WebSockets and serves git over HTTPS.
//
// With API=PORT in its environment, what is below /v1/messages is answered by the server at that port.
// web.js CERT KEY REPOSITORIES TOKEN: prints the ports of its HTTPS and HTTP listeners, then a line of JSON for
// each request it sees.
const { readFileSync } = require("fs");
const { createHash } = require("crypto");
const { spawn } = require("child_process");
const [cert, key, repositories, token] = process.argv.slice(2);

const seen = (req) => console.log(JSON.stringify({
  method: req.method, url: req.url, authorization: req.headers.authorization, apiKey: req.headers["x-api-key"], headers: req.rawHeaders,
}));

// git's own CGI program, behind a token.
function git(req, res) {
  const wanted = "Basic " + Buffer.from(`x-access-token:${token}`).toString("base64");
  if (req.headers.authorization !== wanted) {
    res.writeHead(401, { "www-authenticate": 'Basic realm="git"' });
    return res.end("who are you?\n");
  }
  const url = new URL(req.url, "https://x");
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env.PATH, GIT_PROJECT_ROOT: repositories, GIT_HTTP_EXPORT_ALL: "1", REMOTE_USER: "box",
      PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1), REQUEST_METHOD: req.method,
      CONTENT_TYPE: req.headers["content-type"] || "", HTTP_CONTENT_ENCODING: req.headers["content-encoding"] || "",
      GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "http.receivepack", GIT_CONFIG_VALUE_0: "true",
      GIT_PROTOCOL: req.headers["git-protocol"] || "",
    },
  });
  req.pipe(child.stdin).on("error", () => {});
  let head = Buffer.alloc(0), begun = false;
  child.stdout.on("data", (chunk) => {
    if (begun) return res.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    begun = true;
    const fields = head.subarray(0, end).toString().split("\r\n").map((line) => line.split(/: (.*)/s));
    const status = fields.find(([name]) => name.toLowerCase() === "status");
    const others = fields.filter(([name]) => name.toLowerCase() !== "status");
    res.writeHead(status ? parseInt(status[1]) : 200, Object.fromEntries(others.map(([n, v]) => [n, v])));
    res.write(head.subarray(end + 4));
  }).on("end", () => res.end());
}

function big(req, res) {
  let left = Number(new URL(req.url, "https://x").searchParams.get("bytes"));
  const block = Buffer.alloc(1 << 16, "agentbox");
  res.writeHead(200, { "content-type": "application/octet-stream", "content-length": left });
  const more = () => {
    while (left > 0) {
      const part = block.subarray(0, Math.min(left, block.length));
      left -= part.length;
      if (!res.write(part)) return res.once("drain", more);
    }
    res.end();
  };
  more();
}

function serve(req, res) {
  seen(req);
  if (/^\/[^?]*\.git\//.test(req.url)) return git(req, res);
  if (req.url.startsWith("/big")) return big(req, res);
  if (process.env.API && req.url.startsWith("/v1/messages")) {
    const { method, url: path, headers } = req;
    const to = require("http").request({ port: process.env.API, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers);
      answer.pipe(res);
    });
    return req.pipe(to);
  }
  let bytes = 0;
  req.on("data", (chunk) => (bytes += chunk.length)).on("end", () => {
    res.writeHead(200, { "content-type": "application/json", "x-echo": req.headers.authorization || "none" });
    res.end(JSON.stringify({ url: req.url, bytes, authorization: req.headers.authorization, host: req.headers.host }));
  });
}

// Frames of up to 125 bytes come back as they are.
function websocket(req, socket) {
  seen(req);
  const accept = createHash("sha1").update(req.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
  let held = Buffer.alloc(0);
  socket.on("error", () => {}).on("data", (chunk) => {
    held = Buffer.concat([held, chunk]);
    while (held.length >= 6 && held.length >= 6 + (held[1] & 127)) {
      const length = held[1] & 127, mask = held.subarray(2, 6);
      const text = Buffer.from(held.subarray(6, 6 + length).map((b, i) => b ^ mask[i % 4]));
      held = held.subarray(6 + length);
      socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
    }
  });
}

const listen = (server) => new Promise((done) => server.on("upgrade", websocket).listen(0, "127.0.0.1", () => done(server.address().port)));
(async () => {
  const tls = await listen(require("https").createServer({ cert: readFileSync(cert), key: readFileSync(key) }, serve));
  const plain = await listen(require("http").createServer(serve));
  console.log(`${tls} ${plain}`);
})();
