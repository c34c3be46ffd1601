// A stand-in for OpenAI's interface: every prompt is answered with one sentence.
const http = require("http");
http.createServer((req, res) => {
  let body = "";
  req.on("data", (c) => (body += c)).on("end", () => {
    if (req.method !== "POST") { res.statusCode = 404; return res.end("{}"); }
    res.setHeader("content-type", "text/event-stream");
    const send = (type, data) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    send("response.created", { response: { id: "r1" } });
    send("response.output_item.done", { item: { type: "message", role: "assistant", id: "m1", content: [{ type: "output_text", text: "All done here." }] } });
    send("response.completed", { response: { id: "r1", usage: { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 } } });
    res.end();
  });
}).listen(9999, "127.0.0.1");
