// Walks through what relay offers with a TypeScript client, and prints what it saw as one line of JSON.
// Arguments: which client (client, client-auto or sdk), then `http URL TOKEN` or `stdio PROGRAM PROJECT`.
const [which, transport, where, what] = process.argv.slice(2);
const name = which === "sdk" ? "@modelcontextprotocol/sdk/client" : "@modelcontextprotocol/client";

async function over() {
  if (transport === "http") {
    const { StreamableHTTPClientTransport } = await import(which === "sdk" ? `${name}/streamableHttp.js` : name);
    return new StreamableHTTPClientTransport(new URL(where), {
      requestInit: { headers: { Authorization: `Bearer ${what}` } },
    });
  }
  const { StdioClientTransport } = await import(which === "sdk" ? `${name}/stdio.js` : `${name}/stdio`);
  return new StdioClientTransport({ command: where, args: ["mcp"], cwd: what, env: process.env });
}

const { Client } = await import(which === "sdk" ? `${name}/index.js` : name);
const options = which === "client-auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "walk", version: "1" }, options);
const seen = {};
const line = await over();
if (which === "sdk") line.setProtocolVersion = (revision) => (seen.revision = revision);
await client.connect(line);
seen.revision ??= client.getNegotiatedProtocolVersion();

const call = async (tool, args) => (await client.callTool({ name: tool, arguments: args })).structuredContent;
const inbox = "relay://inbox/RedForest";
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
for (const agent of ["BlueLake", "RedForest"]) await call("start", { agent });

const updated = Promise.withResolvers();
if (which === "sdk") {
  const { ResourceUpdatedNotificationSchema } = await import("@modelcontextprotocol/sdk/types.js");
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated.resolve(params.uri));
} else {
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => updated.resolve(params.uri));
}
if (which === "client-auto") await client.listen({ resourceSubscriptions: [inbox] });
else await client.subscribeResource({ uri: inbox });

const letter = { agent: "BlueLake", to: ["RedForest"], thread: "bd-1", subject: "Login", body: "Is it *you*?" };
const sent = await call("send", { ...letter, ack_required: true });
seen.updated = await updated.promise;
const mail = (await call("poll", { agent: "RedForest", bodies: true })).result.messages;
seen.mail = mail.map(({ from, subject, body }) => ({ from, subject, body }));
const acked = await call("ack", { agent: "RedForest", ids: [sent.result.message.id] });
seen.acked = acked.result.acks.map(({ first }) => first);
const refused = await client.callTool({ name: "send", arguments: { ...letter, to: ["Nobody"] } });
seen.refused = [refused.isError, refused.structuredContent.error.code];
const { contents } = await client.readResource({ uri: "relay://agents" });
seen.agents = ["BlueLake", "RedForest"].filter((agent) => contents[0].text.includes(agent));
const prompt = await client.getPrompt({ name: "start_work", arguments: { thread: "bd-1" } });
seen.prompt = prompt.messages[0].content.text.split(" with ")[0];
const { resourceTemplates } = await client.listResourceTemplates();
seen.template = resourceTemplates.find((template) => template.name === "inbox").uriTemplate;
const ref = { type: "ref/resource", uri: seen.template };
const completed = await client.complete({ ref, argument: { name: "agent", value: "red" } });
seen.completed = completed.completion.values;
seen.server = client.getServerVersion().name;
console.log(JSON.stringify(seen));
await client.close();
