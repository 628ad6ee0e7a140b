/** The host refused a call. */
export class Refused extends Error {
  /**
   * @param {string} code such as `not-leader`: the contract's name of the reason
   * @param {string} reason in the words of Juju's hook tools
   * @param {string} what was being done
   */
  constructor(code, reason, what) {
    super(`${what}: ${reason}`);
    this.name = "Refused";
    this.code = code;
    this.reason = reason;
  }
}

/**
 * Asks the host; what it refuses is thrown as {@link Refused}, with what was being done.
 * @template T
 * @param {string} what
 * @param {() => T} call
 * @returns {T}
 */
export function ask(what, call) {
  try {
    return call();
  } catch (error) {
    const refusal = error?.payload;
    if (typeof refusal?.tag !== "string") throw error;
    const [code, reason] = refusal.tag === "other" ? refusal.val : [refusal.tag, refusal.val];
    throw new Refused(code, reason, what);
  }
}
