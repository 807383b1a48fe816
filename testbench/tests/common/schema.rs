//! A validator for the part of JSON Schema that our schemas use. A keyword that it does not know is a failure, so that no
//! schema says more than is checked.

use serde_json::Value;

/// Where and why `value` is not as `schema` says.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    at(schema, schema, value, "$")
}

fn at(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let rules = schema.as_object().ok_or_else(|| format!("{path}: the schema is no object"))?;
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "required" | "additionalProperties" => {}
            "type" => is_type(rule, value, path)?,
            "const" if value == rule => {}
            "enum" if rule.as_array().is_some_and(|list| list.contains(value)) => {}
            "const" | "enum" => return Err(format!("{path}: {value} is not {rule}")),
            "minimum" | "maximum" => in_range(keyword, rule, value, path)?,
            "pattern" => is_hash(rule, value, path)?,
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    at(root, rule, item, &format!("{path}[{n}]"))?;
                }
            }
            "properties" => properties(root, rules, value, path)?,
            "oneOf" => {
                let results: Vec<_> =
                    rule.as_array().into_iter().flatten().map(|one| at(root, one, value, path)).collect();
                if results.iter().filter(|result| result.is_ok()).count() != 1 {
                    return Err(format!("{path}: not exactly one of {results:?}"));
                }
            }
            "$ref" => {
                let pointer =
                    rule.as_str().and_then(|text| text.strip_prefix('#')).and_then(|pointer| root.pointer(pointer));
                at(root, pointer.ok_or_else(|| format!("{path}: no {rule}"))?, value, path)?;
            }
            other => return Err(format!("{path}: the validator does not know `{other}`")),
        }
    }
    if !rules.contains_key("properties") && value.is_object() && rules.contains_key("additionalProperties") {
        properties(root, rules, value, path)?;
    }
    Ok(())
}

fn is_type(rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let names: Vec<&str> = match rule {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    if names.iter().any(is) { Ok(()) } else { Err(format!("{path}: {value} is not {rule}")) }
}

fn in_range(keyword: &str, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let (Some(limit), Some(number)) = (rule.as_f64(), value.as_f64()) else { return Ok(()) };
    let good = if keyword == "minimum" { number >= limit } else { number <= limit };
    if good { Ok(()) } else { Err(format!("{path}: {value}, {keyword} {limit}")) }
}

/// The one pattern that is used: eight hexadecimal digits.
fn is_hash(rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let good = value
        .as_str()
        .is_some_and(|text| text.len() == 8 && text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
    if rule == "^[0-9a-f]{8}$" && good { Ok(()) } else { Err(format!("{path}: {value} is not {rule}")) }
}

fn properties(root: &Value, rules: &serde_json::Map<String, Value>, value: &Value, path: &str) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let known = rules.get("properties").and_then(Value::as_object);
    for name in rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        object.get(name).ok_or_else(|| format!("{path}: no {name}"))?;
    }
    for (name, inner) in object {
        let path = format!("{path}.{name}");
        match (known.and_then(|known| known.get(name)), rules.get("additionalProperties")) {
            (Some(schema), _) => at(root, schema, inner, &path)?,
            (None, Some(Value::Bool(false))) => return Err(format!("{path}: not in the schema")),
            (None, Some(schema @ Value::Object(_))) => at(root, schema, inner, &path)?,
            (None, _) => {}
        }
    }
    Ok(())
}
