"""Walks through what relay offers with the Python client, and prints what it saw as one line of JSON.

Arguments: `http URL TOKEN` or `stdio PROGRAM PROJECT`.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ResourceTemplateReference

INBOX = "relay://inbox/RedForest"
LETTER = {"agent": "BlueLake", "to": ["RedForest"], "thread": "bd-1", "subject": "Login", "body": "Is it *you*?"}


def server(transport, where, what):
    if transport == "stdio":
        return StdioServerParameters(command=where, args=["mcp"], cwd=what, env=dict(os.environ))
    headers = {"Authorization": f"Bearer {what}"}
    return streamable_http_client(where, http_client=httpx2.AsyncClient(headers=headers, timeout=60))


async def walk(client):
    async def call(tool, **arguments):
        return (await client.call_tool(tool, arguments)).structured_content

    seen = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
    for agent in ["BlueLake", "RedForest"]:
        await call("start", agent=agent)
    async with client.listen(resource_subscriptions=[INBOX]) as changes:
        sent = await call("send", **LETTER, ack_required=True)
        async for change in changes:
            seen["updated"] = change.uri
            break
    mail = (await call("poll", agent="RedForest", bodies=True))["result"]["messages"]
    seen["mail"] = [{name: message[name] for name in ("from", "subject", "body")} for message in mail]
    acked = await call("ack", agent="RedForest", ids=[sent["result"]["message"]["id"]])
    seen["acked"] = [ack["first"] for ack in acked["result"]["acks"]]
    refused = await client.call_tool("send", {**LETTER, "to": ["Nobody"]})
    seen["refused"] = [refused.is_error, refused.structured_content["error"]["code"]]
    agents = (await client.read_resource("relay://agents")).contents[0].text
    seen["agents"] = [agent for agent in ["BlueLake", "RedForest"] if agent in agents]
    prompt = await client.get_prompt("start_work", {"thread": "bd-1"})
    seen["prompt"] = prompt.messages[0].content.text.split(" with ")[0]
    templates = (await client.list_resource_templates()).resource_templates
    seen["template"] = next(template.uri_template for template in templates if template.name == "inbox")
    inboxes = ResourceTemplateReference(type="ref/resource", uri=seen["template"])
    completed = await client.complete(inboxes, {"name": "agent", "value": "red"})
    seen["completed"] = completed.completion.values
    seen["server"] = client.server_info.name
    seen["revision"] = client.protocol_version
    return seen


async def main():
    async with Client(server(*sys.argv[1:])) as client:
        print(json.dumps(await walk(client)))


asyncio.run(main())
