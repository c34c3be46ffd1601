// A stand-in for Anthropic's interface: every prompt is answered with one sentence.
const http = require("http");
http.createServer((req, res) => {
  let body = "";
  req.on("data", (c) => (body += c)).on("end", () => {
    if (!req.url.startsWith("/v1/messages") || req.url.includes("count_tokens")) { res.setHeader("content-type","application/json"); return res.end(JSON.stringify({ input_tokens: 1 })); }
    const wants = JSON.parse(body || "{}");
    const msg = { id: "msg_1", type: "message", role: "assistant", model: wants.model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
    if (!wants.stream) { res.setHeader("content-type","application/json"); return res.end(JSON.stringify({ ...msg, content: [{ type: "text", text: "All done here." }], stop_reason: "end_turn" })); }
    res.setHeader("content-type", "text/event-stream");
    const send = (type, data) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    send("message_start", { message: msg });
    send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    send("content_block_delta", { index: 0, delta: { type: "text_delta", text: "All done here." } });
    send("content_block_stop", { index: 0 });
    send("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 4 } });
    send("message_stop", {});
    res.end();
  });
}).listen(9999, "127.0.0.1");
