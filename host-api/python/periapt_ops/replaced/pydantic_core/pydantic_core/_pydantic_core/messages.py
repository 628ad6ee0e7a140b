"""What is said of each kind of error; where JSON was read, some of it is said in JSON's words."""

TEMPLATES = {
    "no_such_attribute": "Object has no attribute '{attribute}'",
    "json_invalid": "Invalid JSON: {error}",
    "json_type": "JSON input should be string, bytes or bytearray",
    "recursion_loop": "Recursion error - cyclic reference detected",
    "missing": "Field required",
    "frozen_field": "Field is frozen",
    "frozen_instance": "Instance is frozen",
    "extra_forbidden": "Extra inputs are not permitted",
    "invalid_key": "Keys should be strings",
    "get_attribute_error": "Error extracting attribute: {error}",
    "model_type": "Input should be a valid dictionary or instance of {class_name}",
    "model_attributes_type": "Input should be a valid dictionary or object to extract fields from",
    "dataclass_type": "Input should be a dictionary or an instance of {class_name}",
    "dataclass_exact_type": "Input should be an instance of {class_name}",
    "default_factory_not_called": (
        "The default factory uses validated data, but at least one validation error occurred"
    ),
    "none_required": "Input should be None",
    "greater_than": "Input should be greater than {gt}",
    "greater_than_equal": "Input should be greater than or equal to {ge}",
    "less_than": "Input should be less than {lt}",
    "less_than_equal": "Input should be less than or equal to {le}",
    "multiple_of": "Input should be a multiple of {multiple_of}",
    "finite_number": "Input should be a finite number",
    "too_short": "{field_type} should have at least {min_length} item{expected_plural} after validation, not {actual_length}",
    "too_long": "{field_type} should have at most {max_length} item{expected_plural} after validation, not {actual_length}",
    "iterable_type": "Input should be iterable",
    "iteration_error": "Error iterating over object, error: {error}",
    "string_type": "Input should be a valid string",
    "string_sub_type": "Input should be a string, not an instance of a subclass of str",
    "string_unicode": "Input should be a valid string, unable to parse raw data as a unicode string",
    "string_too_short": "String should have at least {min_length} character{expected_plural}",
    "string_too_long": "String should have at most {max_length} character{expected_plural}",
    "string_pattern_mismatch": "String should match pattern '{pattern}'",
    "string_not_ascii": "String should contain only ASCII characters",
    "enum": "Input should be {expected}",
    "dict_type": "Input should be a valid dictionary",
    "mapping_type": "Input should be a valid mapping, error: {error}",
    "list_type": "Input should be a valid list",
    "deque_type": "Input should be a valid deque",
    "tuple_type": "Input should be a valid tuple",
    "set_type": "Input should be a valid set",
    "set_item_not_hashable": "Set items should be hashable",
    "bool_type": "Input should be a valid boolean",
    "bool_parsing": "Input should be a valid boolean, unable to interpret input",
    "int_type": "Input should be a valid integer",
    "int_parsing": "Input should be a valid integer, unable to parse string as an integer",
    "int_parsing_size": "Unable to parse input string as an integer, exceeded maximum size",
    "int_from_float": "Input should be a valid integer, got a number with a fractional part",
    "float_type": "Input should be a valid number",
    "float_parsing": "Input should be a valid number, unable to parse string as a number",
    "bytes_type": "Input should be a valid bytes",
    "bytes_too_short": "Data should have at least {min_length} byte{expected_plural}",
    "bytes_too_long": "Data should have at most {max_length} byte{expected_plural}",
    "bytes_invalid_encoding": "Data should be valid {encoding}: {encoding_error}",
    "value_error": "Value error, {error}",
    "assertion_error": "Assertion failed, {error}",
    "literal_error": "Input should be {expected}",
    "missing_sentinel_error": "Input should be the 'MISSING' sentinel",
    "date_type": "Input should be a valid date",
    "date_parsing": "Input should be a valid date in the format YYYY-MM-DD, {error}",
    "date_from_datetime_parsing": "Input should be a valid date or datetime, {error}",
    "date_from_datetime_inexact": "Datetimes provided to dates should have zero time - e.g. be exact dates",
    "date_past": "Date should be in the past",
    "date_future": "Date should be in the future",
    "time_type": "Input should be a valid time",
    "time_parsing": "Input should be in a valid time format, {error}",
    "datetime_type": "Input should be a valid datetime",
    "datetime_parsing": "Input should be a valid datetime, {error}",
    "datetime_from_date_parsing": "Input should be a valid datetime or date, {error}",
    "datetime_past": "Input should be in the past",
    "datetime_future": "Input should be in the future",
    "timezone_naive": "Input should not have timezone info",
    "timezone_aware": "Input should have timezone info",
    "timezone_offset": "Timezone offset of {tz_expected} required, got {tz_actual}",
    "time_delta_type": "Input should be a valid timedelta",
    "time_delta_parsing": "Input should be a valid timedelta, {error}",
    "frozen_set_type": "Input should be a valid frozenset",
    "is_instance_of": "Input should be an instance of {class}",
    "is_subclass_of": "Input should be a subclass of {class}",
    "callable_type": "Input should be callable",
    "union_tag_invalid": (
        "Input tag '{tag}' found using {discriminator} does not match any of the expected tags: {expected_tags}"
    ),
    "union_tag_not_found": "Unable to extract tag using discriminator {discriminator}",
    "arguments_type": "Arguments must be a tuple, list or a dictionary",
    "missing_argument": "Missing required argument",
    "unexpected_keyword_argument": "Unexpected keyword argument",
    "missing_keyword_only_argument": "Missing required keyword only argument",
    "unexpected_positional_argument": "Unexpected positional argument",
    "missing_positional_only_argument": "Missing required positional only argument",
    "multiple_argument_values": "Got multiple values for argument",
    "url_type": "URL input should be a string or URL",
    "url_parsing": "Input should be a valid URL, {error}",
    "url_syntax_violation": "Input violated strict URL syntax rules, {error}",
    "url_too_long": "URL should have at most {max_length} character{expected_plural}",
    "url_scheme": "URL scheme should be {expected_schemes}",
    "uuid_type": "UUID input should be a string, bytes or UUID object",
    "uuid_parsing": "Input should be a valid UUID, {error}",
    "uuid_version": "UUID version {expected_version} expected",
    "decimal_type": "Decimal input should be an integer, float, string or Decimal object",
    "decimal_parsing": "Input should be a valid decimal",
    "decimal_max_digits": "Decimal input should have no more than {max_digits} digit{expected_plural} in total",
    "decimal_max_places": "Decimal input should have no more than {decimal_places} decimal place{expected_plural}",
    "decimal_whole_digits": (
        "Decimal input should have no more than {whole_digits} digit{expected_plural} before the decimal point"
    ),
}

OF_JSON = {
    "model_type": "Input should be an object",
    "model_attributes_type": "Input should be an object",
    "dataclass_type": "Input should be an object",
    "none_required": "Input should be null",
    "iterable_type": "Input should be a valid array",
    "dict_type": "Input should be an object",
    "list_type": "Input should be a valid array",
    "deque_type": "Input should be a valid array",
    "tuple_type": "Input should be a valid array",
    "set_type": "Input should be a valid array",
    "frozen_set_type": "Input should be a valid array",
    "time_delta_type": "Input should be a valid duration",
    "time_delta_parsing": "Input should be a valid duration, {error}",
    "arguments_type": "Arguments must be an array or an object",
}

#: The number by which `{expected_plural}` counts.
COUNTED = ("min_length", "max_length", "max_digits", "decimal_places", "whole_digits")


def rendered(template: str, context: dict | None) -> str:
    """A template with what is known of the error; `{name}` stands for itself where nothing is."""
    if not context:
        return template
    text = template
    if "{expected_plural}" in text:
        count = next((context[name] for name in COUNTED if "{" + name + "}" in text and name in context), 0)
        text = text.replace("{expected_plural}", "" if count == 1 else "s")
    for name, value in context.items():
        place = "{" + name + "}"
        if place in text:
            text = text.replace(place, value if isinstance(value, str) else str(value))
    return text
