#include <inttypes.h>

#include "internal.h"

static const charm_list_string_t EVERYWHERE = {NULL, 0};

static bool is_port(int64_t port) {
  if (port >= 1 && port <= 65535) return true;
  periapt_fail("%" PRId64 " is no port: expected 1 to 65535", port);
  return false;
}

static periapt_charm_ports_ports_t tcp(int64_t port) {
  periapt_charm_ports_port_range_t range = {(uint16_t)port, (uint16_t)port};
  return (periapt_charm_ports_ports_t){.tag = PERIAPT_CHARM_PORTS_PORTS_TCP, .val.tcp = range};
}

void periapt_open_tcp(int64_t port) {
  if (periapt_failed() || !is_port(port)) return;
  periapt_charm_ports_ports_t ports = tcp(port);
  charm_list_string_t everywhere = EVERYWHERE;
  periapt_charm_types_error_t error;
  if (!periapt_charm_ports_open(&ports, &everywhere, &error)) periapt_refused("opening a port", &error);
}

static void close_ports(periapt_charm_ports_ports_t *ports, charm_list_string_t *endpoints) {
  periapt_charm_types_error_t error;
  if (!periapt_failed() && !periapt_charm_ports_close(ports, endpoints, &error)) {
    periapt_refused("closing a port", &error);
  }
}

void periapt_close_tcp(int64_t port) {
  if (periapt_failed() || !is_port(port)) return;
  periapt_charm_ports_ports_t ports = tcp(port);
  charm_list_string_t everywhere = EVERYWHERE;
  close_ports(&ports, &everywhere);
}

void periapt_only_tcp(int64_t port) {
  if (periapt_failed() || !is_port(port)) return;
  periapt_charm_ports_list_opened_ports_t opened;
  periapt_charm_ports_opened(&opened);
  for (size_t i = 0; i < opened.len; i++) {
    periapt_charm_ports_opened_ports_t *each = &opened.ptr[i];
    const periapt_charm_ports_port_range_t *range = &each->ports.val.tcp;
    bool is_wanted = each->ports.tag == PERIAPT_CHARM_PORTS_PORTS_TCP && range->first == port &&
                     range->last == port && each->endpoints.len == 0;
    if (!is_wanted) close_ports(&each->ports, &each->endpoints);
  }
  periapt_open_tcp(port);
}
