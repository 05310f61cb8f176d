// Answers that a page does not get: the network loses them, or something between browser and server gives its own.

/** The server carries out the next request to `path`, and its answer is lost. */
export async function loseAnswer(person, path) {
  person.expect('net::ERR_FAILED', path);
  await next(person, path, async (route) => {
    await route.fetch();
    await route.abort('failed');
  });
}

/** The server carries out the next request to `path`, and the page gets this error instead of its answer. */
export async function replaceAnswer(person, path, status, json) {
  person.expect(status, path);
  await next(person, path, async (route) => {
    await route.fetch();
    await route.fulfill({ status, json });
  });
}

/** The next request to `path` is refused before it reaches the server. */
export async function refuse(person, path, status, json) {
  person.expect(status, path);
  await next(person, path, (route) => route.fulfill({ status, json }));
}

/**
 * The server carries out the next request to `path`, and the page waits for its answer: this error, once the returned
 * function is called.
 */
export async function holdAnswer(person, path, status, json) {
  person.expect(status, path);
  let answer;
  const asked = new Promise((resolve) => { answer = resolve; });
  await next(person, path, async (route) => {
    await route.fetch();
    await asked;
    await route.fulfill({ status, json });
  });
  return answer;
}

const next = (person, path, handle) => person.page.route(`**${path}`, handle, { times: 1 });
