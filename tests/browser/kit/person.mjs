// Somebody who uses the dashboard: what they can do on any page, said in terms of what they see.

/** A person with a window. */
export class Person {
  constructor(name, context, page, watch, journey) {
    Object.assign(this, { name, context, page, watch, journey });
  }

  /** See `Watch.expect`. */
  expect(status, path) {
    this.watch.expect(status, path);
  }

  /** Looks at the page in every way, with screenshots under `name`. */
  look(name) {
    return this.journey.look(this.page, name);
  }
}
