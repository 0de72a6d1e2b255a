//! What the official conformance suite calls by its name: tools, resources and prompts of every form that an answer can have.
//! They are there in a test's build alone, and only where it asks for them; they are about the protocol, not about relay.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo,
    ContentBlock, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, ProgressNotificationParam, Prompt,
    PromptArgument, PromptMessage, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Role, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use super::Handler;

/// One red pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

const TOOLS: [(&str, &str); 10] = [
    ("test_simple_text", "Answers with a text"),
    ("test_image_content", "Answers with an image"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_multiple_content_types", "Answers with a text, an image and a resource"),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Says how far it is"),
    ("test_missing_capability", "Needs what its caller cannot do"),
    ("test_logging_tool", "Answers a caller who wants no log"),
    (SCHEMA_TOOL, "Has a schema with every kind of keyword"),
];
const SCHEMA_TOOL: &str = "json_schema_2020_12_tool";

/// Each with its arguments.
const PROMPTS: [(&str, &[&str]); 4] = [
    ("test_simple_prompt", &[]),
    ("test_prompt_with_arguments", &["arg1", "arg2"]),
    ("test_prompt_with_embedded_resource", &["resourceUri"]),
    ("test_prompt_with_image", &[]),
];

/// Each with what kind of thing it is.
const RESOURCES: [(&str, &str); 3] =
    [("test://static-text", "text/plain"), ("test://static-binary", "image/png"), (WATCHED, "text/plain")];
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: &str = "test://template/{id}/data";

fn are_there(handler: &Handler) -> bool {
    handler.desk.front().has_fixtures()
}

pub fn tools(handler: &Handler, mut list: ListToolsResult) -> ListToolsResult {
    if are_there(handler) {
        list.tools.extend(TOOLS.map(|(name, about)| Tool::new(name, about, schema(name))));
    }
    list
}

fn schema(name: &str) -> JsonObject {
    let schema = if name != SCHEMA_TOOL {
        json!({"type": "object", "properties": {}})
    } else {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }},
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        })
    };
    schema.as_object().cloned().unwrap_or_default()
}

pub async fn call(
    handler: &Handler,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    if !are_there(handler) || !TOOLS.iter().any(|(name, _)| *name == request.name) {
        return None;
    }
    if request.name == "test_missing_capability" {
        return Some(Err(incapable()));
    }
    if request.name == "test_tool_with_progress" {
        progress(context).await;
    }
    let content = content(&request.name);
    let is_failure = request.name == "test_error_handling";
    let result = if is_failure { CallToolResult::error(content) } else { CallToolResult::success(content) };
    Some(Ok(result.into()))
}

fn content(tool: &str) -> Vec<ContentBlock> {
    let image = || ContentBlock::image(IMAGE, "image/png");
    let resource = |text: &str, uri: &str, kind: &str| {
        ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(kind))
    };
    match tool {
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![ContentBlock::audio(AUDIO, "audio/wav")],
        "test_embedded_resource" => {
            vec![resource("This is an embedded resource content.", "test://embedded-resource", "text/plain")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            image(),
            resource(r#"{"test":"data","value":123}"#, "test://mixed-content-resource", "application/json"),
        ],
        "test_error_handling" => vec![ContentBlock::text("This tool intentionally returns an error for testing")],
        _ => vec![ContentBlock::text("This is a simple text response for testing.")],
    }
}

/// What one says whose caller lacks what is needed.
fn incapable() -> ErrorData {
    let needed = json!({"requiredCapabilities": {"sampling": {}}});
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "the client cannot sample", Some(needed))
}

async fn progress(context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for done in [0.0, 50.0, 100.0] {
        let told = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        let _ = context.peer.notify_progress(told).await;
    }
}

pub fn resources(handler: &Handler, mut list: ListResourcesResult) -> ListResourcesResult {
    if are_there(handler) {
        let resource = |(uri, kind): (&str, &str)| Resource::new(uri, uri).with_description(uri).with_mime_type(kind);
        list.resources.extend(RESOURCES.map(resource));
    }
    list
}

pub fn templates(handler: &Handler, mut list: ListResourceTemplatesResult) -> ListResourceTemplatesResult {
    if are_there(handler) {
        let template = ResourceTemplate::new(TEMPLATE, "template").with_mime_type("application/json");
        list.resource_templates.push(template.with_description("Data of one id"));
    }
    list
}

pub fn read(handler: &Handler, uri: &str) -> Option<ReadResourceResponse> {
    if !are_there(handler) {
        return None;
    }
    let contents = match uri {
        "test://static-binary" => ResourceContents::blob(IMAGE, uri).with_mime_type("image/png"),
        "test://static-text" | WATCHED => {
            ResourceContents::text("This is the content of the static text resource.", uri).with_mime_type("text/plain")
        }
        _ => {
            let (before, after) = TEMPLATE.split_once("{id}")?;
            let id = uri.strip_prefix(before)?.strip_suffix(after)?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Some(ReadResourceResult::new(vec![contents]).into())
}

/// It never changes, so whoever is told of changes is told nothing.
pub fn is_watched(handler: &Handler, uri: &str) -> bool {
    are_there(handler) && uri == WATCHED
}

pub fn prompts(handler: &Handler, mut list: ListPromptsResult) -> ListPromptsResult {
    if are_there(handler) {
        let argument = |name: &&str| PromptArgument::new(*name).with_description(*name).with_required(true);
        let prompt = |(name, arguments): (&'static str, &[&str])| {
            Prompt::new(name, Some(name), Some(arguments.iter().map(argument).collect()))
        };
        list.prompts.extend(PROMPTS.map(prompt));
    }
    list
}

pub fn prompt(handler: &Handler, request: &GetPromptRequestParams) -> Option<GetPromptResponse> {
    if !are_there(handler) {
        return None;
    }
    let argument = |name: &str| request.arguments.as_ref()?.get(name)?.as_str();
    let user = |content: ContentBlock| PromptMessage::new(Role::User, content);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![user(ContentBlock::text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![user(ContentBlock::text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'")))]
        }
        "test_prompt_with_embedded_resource" => {
            let embedded = ResourceContents::text("Embedded resource content for testing.", argument("resourceUri")?);
            vec![
                user(ContentBlock::resource(embedded.with_mime_type("text/plain"))),
                user(ContentBlock::text("Please process the embedded resource above.")),
            ]
        }
        "test_prompt_with_image" => vec![
            user(ContentBlock::image(IMAGE, "image/png")),
            user(ContentBlock::text("Please analyze the image above.")),
        ],
        _ => return None,
    };
    Some(GetPromptResult::new(messages).into())
}

pub fn complete(handler: &Handler, request: &CompleteRequestParams) -> Option<CompleteResult> {
    let is_ours = are_there(handler) && request.argument.name == "arg1";
    let values = ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(&request.argument.value));
    let info = CompletionInfo::with_all_values(values.map(str::to_owned).collect());
    is_ours.then_some(info).and_then(Result::ok).map(CompleteResult::new)
}
