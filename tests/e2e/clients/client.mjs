// A published MCP client in JavaScript uses two Rust plugins and prints what it saw, as JSON.
//
//     client.mjs ERA HELLO SLOW
//
// ERA is legacy (a handshake), 2026-07-28 (none) or auto (the client finds out); HELLO and SLOW are the programs. The package is found from the
// folder in LEMON_TEST_NPM, since it is not installed beside this file.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.env.LEMON_TEST_NPM}/package.json`));
const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const [era, hello, slow] = process.argv.slice(2);
const saw = {};

async function connected(command, use) {
  const mode = era === "legacy" || era === "auto" ? era : { pin: era };
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport({ command }));
  await use(client);
  await client.close();
}

function text(result) {
  const [block] = result.content;
  return block.text;
}

await connected(hello, async (client) => {
  saw.version = client.getNegotiatedProtocolVersion();
  saw.tools = (await client.listTools()).tools.map((tool) => tool.name);
  saw.greeting = text(await client.callTool({ name: "greet", arguments: { name: "Ann" } }));
  const wrong = await client.callTool({ name: "greet", arguments: { name: 5 } });
  saw.wrong = [wrong.isError, text(wrong)];
  saw.unknown = await client.callTool({ name: "gone", arguments: {} }).catch((error) => error.code);
});

await connected(slow, async (client) => {
  const count = (to) => ({ name: "count", arguments: { to, pause_ms: 1 } });
  saw.counted = text(await client.callTool(count(3)));

  // This client leaves out progress that it reads together with the answer, so it is looked at where none comes.
  saw.progress = [];
  const abort = new AbortController();
  const onprogress = ({ progress, total, message }) => {
    saw.progress.push([progress, total, message]);
    abort.abort();
  };
  const call = client.callTool(count(1_000_000), { signal: abort.signal, onprogress });
  saw.cancelled = await call.then(() => false, () => true);
  saw.after = text(await client.callTool(count(1)));
});

console.log(JSON.stringify(saw));
