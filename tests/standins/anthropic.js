// A stand-in for Anthropic's interface. A prompt "use TOOL {…}" is answered by a use of that tool, one
// with "refuse this" by an error, and everything else with one sentence.
const http = require("http");
const textOf = (content) =>
  typeof content === "string" ? content : (content || []).map((part) => (part.type === "text" ? part.text : "")).join("\n");

function answer(wants) {
  const last = (wants.messages || []).filter((m) => m.role === "user").at(-1) || {};
  const said = textOf(last.content);
  const [, tool, input] = /^use (\w+) (\{.*\})$/m.exec(said) || [];
  // Some tools are named only when they are looked for; a request for a title has none at all.
  const has = tool && (wants.tools || []).length > 0;
  const answered = Array.isArray(last.content) && last.content.some((part) => part.type === "tool_result");
  if (has && !answered) return { type: "tool_use", id: "toolu_" + Date.now(), name: tool, input: JSON.parse(input) };
  return { type: "text", text: "All done here." };
}

http.createServer((req, res) => {
  let body = "";
  req.on("data", (c) => (body += c)).on("end", () => {
    const json = (status, value) => { res.writeHead(status, { "content-type": "application/json" }); res.end(JSON.stringify(value)); };
    if (!req.url.startsWith("/v1/messages") || req.url.includes("count_tokens")) return json(200, { input_tokens: 1 });
    const wants = JSON.parse(body || "{}");
    const last = (wants.messages || []).filter((m) => m.role === "user").at(-1) || {};
    if (textOf(last.content).includes("refuse this")) return json(400, { type: "error", error: { type: "invalid_request_error", message: "refused" } });
    const block = answer(wants);
    const stop_reason = block.type === "text" ? "end_turn" : "tool_use";
    const msg = { id: "msg_1", type: "message", role: "assistant", model: wants.model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
    if (!wants.stream) return json(200, { ...msg, content: [block], stop_reason });
    res.setHeader("content-type", "text/event-stream");
    const send = (type, data) => res.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    const [empty, delta] = block.type === "text"
      ? [{ type: "text", text: "" }, { type: "text_delta", text: block.text }]
      : [{ ...block, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(block.input) }];
    send("message_start", { message: msg });
    send("content_block_start", { index: 0, content_block: empty });
    send("content_block_delta", { index: 0, delta });
    send("content_block_stop", { index: 0 });
    send("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 4 } });
    send("message_stop", {});
    res.end();
  });
}).listen(Number(process.env.PORT || 9999), "127.0.0.1");
