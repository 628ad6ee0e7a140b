#include <string.h>

#include "internal.h"

static const char *read(const char *uri, const char *key, periapt_charm_secrets_revision_mode_t mode) {
  if (periapt_failed()) return NULL;
  charm_string_t named = periapt_lent(uri);
  charm_list_tuple2_string_list_u8_t content;
  periapt_charm_types_error_t error;
  if (!periapt_charm_secrets_get(&named, NULL, mode, &content, &error)) {
    periapt_refused(uri, &error);
    return NULL;
  }
  for (size_t i = 0; i < content.len; i++) {
    if (!periapt_is(periapt_copied(&content.ptr[i].f0), key)) continue;
    charm_string_t value = {content.ptr[i].f1.ptr, content.ptr[i].f1.len};
    return periapt_copied(&value);
  }
  return NULL;
}

const char *periapt_secret(const char *uri, const char *key) {
  return read(uri, key, PERIAPT_CHARM_SECRETS_REVISION_MODE_TRACKED);
}

const char *periapt_secret_refresh(const char *uri, const char *key) {
  return read(uri, key, PERIAPT_CHARM_SECRETS_REVISION_MODE_REFRESH);
}
