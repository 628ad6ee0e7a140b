/** What a charm says of its workload. Thrown by a handler, it ends the hook early, and well. */
export class Status {
  /** @param {import("periapt:charm/status@0.1.0").WorkloadStatus} workload @param {string} message */
  constructor(workload, message = "") {
    this.workload = workload;
    this.message = message;
    Object.freeze(this);
  }
}

/** The workload does what it is for. */
export const active = (message) => new Status("active", message);
/** An operator has to do something. */
export const blocked = (message) => new Status("blocked", message);
/** Something else has to happen first. */
export const waiting = (message) => new Status("waiting", message);
/** The charm is at work. */
export const maintenance = (message) => new Status("maintenance", message);
