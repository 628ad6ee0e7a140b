// From the agent's call to the charm's handler.
#include <string.h>

#include "internal.h"

// A relation's event: all of them begin in the same way.
static void about_relation(periapt_event *event, const char *tag, const charm_string_t *endpoint, uint32_t relation,
                           const charm_string_t *app) {
  event->endpoint = periapt_copied(endpoint);
  event->relation = relation;
  event->app = periapt_copied(app);
  event->hook = periapt_text("%s-%s", event->endpoint, tag);
}

// An event about something that has a name: `data-storage-attached`, `backup-action`.
static void named(periapt_event *event, const char *tag, const charm_string_t *name) {
  event->name = periapt_copied(name);
  event->hook = periapt_text("%s-%s", event->name, tag);
}

static void about_secret(periapt_event *event, const char *tag, const charm_string_t *uri,
                         const charm_option_string_t *label) {
  event->hook = tag;
  event->uri = periapt_copied(uri);
  event->label = label->is_some ? periapt_copied(&label->val) : NULL;
}

#define RELATION(tag, it) about_relation(event, tag, &(it)->endpoint, (it)->relation, &(it)->remote_application)
#define STORAGE(tag, it)                    \
  named(event, tag, &(it)->name);           \
  event->id = periapt_copied(&(it)->id);    \
  event->location = periapt_copied(&(it)->location)

// Takes an event apart; answers its tag, which handlers of all its kind are found by.
static const char *understand(const periapt_charm_types_event_t *given, periapt_event *event) {
#define PLAIN(CASE, tag) \
  case PERIAPT_CHARM_TYPES_EVENT_##CASE: return event->hook = tag
  switch (given->tag) {
    PLAIN(INSTALL, "install");
    PLAIN(START, "start");
    PLAIN(STOP, "stop");
    PLAIN(REMOVE, "remove");
    PLAIN(CONFIG_CHANGED, "config-changed");
    PLAIN(UPGRADE_CHARM, "upgrade-charm");
    PLAIN(UPDATE_STATUS, "update-status");
    PLAIN(LEADER_ELECTED, "leader-elected");
    PLAIN(LEADER_SETTINGS_CHANGED, "leader-settings-changed");
    PLAIN(PRE_SERIES_UPGRADE, "pre-series-upgrade");
    PLAIN(POST_SERIES_UPGRADE, "post-series-upgrade");
    PLAIN(COLLECT_METRICS, "collect-metrics");
    PLAIN(METER_STATUS_CHANGED, "meter-status-changed");
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_CREATED:
      RELATION("relation-created", &given->val.relation_created);
      return "relation-created";
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_BROKEN:
      RELATION("relation-broken", &given->val.relation_broken);
      return "relation-broken";
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_JOINED:
      RELATION("relation-joined", &given->val.relation_joined);
      event->unit = periapt_copied(&given->val.relation_joined.remote_unit);
      return "relation-joined";
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_CHANGED: {
      const charm_option_string_t *unit = &given->val.relation_changed.remote_unit;
      RELATION("relation-changed", &given->val.relation_changed);
      event->unit = unit->is_some ? periapt_copied(&unit->val) : NULL;
      return "relation-changed";
    }
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_DEPARTED:
      RELATION("relation-departed", &given->val.relation_departed);
      event->unit = periapt_copied(&given->val.relation_departed.remote_unit);
      event->departing = periapt_copied(&given->val.relation_departed.departing_unit);
      return "relation-departed";
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_BATCH:
      RELATION("relation-batch", &given->val.relation_batch);
      return "relation-batch";
    case PERIAPT_CHARM_TYPES_EVENT_STORAGE_ATTACHED:
      STORAGE("storage-attached", &given->val.storage_attached);
      return "storage-attached";
    case PERIAPT_CHARM_TYPES_EVENT_STORAGE_DETACHING:
      STORAGE("storage-detaching", &given->val.storage_detaching);
      return "storage-detaching";
    case PERIAPT_CHARM_TYPES_EVENT_SECRET_CHANGED:
      about_secret(event, "secret-changed", &given->val.secret_changed.uri, &given->val.secret_changed.label);
      return event->hook;
    case PERIAPT_CHARM_TYPES_EVENT_SECRET_ROTATE:
      about_secret(event, "secret-rotate", &given->val.secret_rotate.uri, &given->val.secret_rotate.label);
      return event->hook;
    case PERIAPT_CHARM_TYPES_EVENT_SECRET_EXPIRED:
      about_secret(event, "secret-expired", &given->val.secret_expired.uri, &given->val.secret_expired.label);
      event->revision = given->val.secret_expired.revision;
      return event->hook;
    case PERIAPT_CHARM_TYPES_EVENT_SECRET_REMOVE:
      about_secret(event, "secret-remove", &given->val.secret_remove.uri, &given->val.secret_remove.label);
      event->revision = given->val.secret_remove.revision;
      return event->hook;
    case PERIAPT_CHARM_TYPES_EVENT_PEBBLE_READY:
      named(event, "pebble-ready", &given->val.pebble_ready.workload);
      return "pebble-ready";
    case PERIAPT_CHARM_TYPES_EVENT_PEBBLE_CUSTOM_NOTICE:
      named(event, "pebble-custom-notice", &given->val.pebble_custom_notice.workload);
      event->id = periapt_copied(&given->val.pebble_custom_notice.notice_id);
      event->key = periapt_copied(&given->val.pebble_custom_notice.notice_key);
      return "pebble-custom-notice";
    case PERIAPT_CHARM_TYPES_EVENT_PEBBLE_CHECK_FAILED:
      named(event, "pebble-check-failed", &given->val.pebble_check_failed.workload);
      event->check = periapt_copied(&given->val.pebble_check_failed.check);
      return "pebble-check-failed";
    case PERIAPT_CHARM_TYPES_EVENT_PEBBLE_CHECK_RECOVERED:
      named(event, "pebble-check-recovered", &given->val.pebble_check_recovered.workload);
      event->check = periapt_copied(&given->val.pebble_check_recovered.check);
      return "pebble-check-recovered";
    case PERIAPT_CHARM_TYPES_EVENT_ACTION:
      named(event, "action", &given->val.action.name);
      event->id = periapt_copied(&given->val.action.id);
      return "action";
    case PERIAPT_CHARM_TYPES_EVENT_CUSTOM:
      named(event, "custom", &given->val.custom.name);
      event->json = periapt_copied(&given->val.custom.json);
      return "custom";
    default:
      // A later contract's: only `*` can be for it.
      return event->hook = "";
  }
}

static const periapt_handler *handler_of(const char *hook) {
  for (const periapt_handler *each = periapt_handlers; each->hook != NULL; each++) {
    if (strcmp(each->hook, hook) == 0) return each;
  }
  return NULL;
}

bool exports_periapt_charm_handler_handle(exports_periapt_charm_handler_invocation_t *invocation,
                                          exports_periapt_charm_handler_outcome_t *outcome,
                                          exports_periapt_charm_handler_failure_t *failure) {
  periapt_begin();
  periapt_event event = {.attempt = invocation->attempt};
  const char *tag = understand(&invocation->event, &event);
  const periapt_handler *handler = handler_of(event.hook);
  if (handler == NULL) handler = handler_of(tag);
  if (handler == NULL) handler = handler_of("*");
  if (handler == NULL) {
    *outcome = PERIAPT_CHARM_TYPES_OUTCOME_UNHANDLED;
    return true;
  }
  handler->handle(&event);
  *outcome = PERIAPT_CHARM_TYPES_OUTCOME_HANDLED;
  if (!periapt_failed()) return true;
  failure->code = periapt_exit_code();
  failure->message = periapt_lent(periapt_failure());
  return false;
}
