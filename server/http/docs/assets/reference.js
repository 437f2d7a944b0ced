// The API reference: Scalar, with what keeps a request that is tried out from changing anything by accident.
const server = new URL('../', location.href)

const createKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )

/** Returns whether a request is to an operation that takes `dry_run`. */
const createIsChange = (paths) => {
  const changes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { parameters = [] }]) => parameters.some(({ name }) => name === 'dry_run'))
      .map(([method]) => ({
        method: method.toUpperCase(),
        pattern: new RegExp(`${path.replace(/\{\w+\}/g, '[^/]+')}$`),
      })),
  )
  return (method, url) =>
    changes.some((change) => change.method === method && change.pattern.test(new URL(url).pathname))
}

/** A change is a dry run unless `dry_run=false` was typed, and has a key of its own unless one was typed. */
const createSend =
  (isChange, send = fetch) =>
  (input, init) => {
    const request = new Request(input, init)
    if (!isChange(request.method, request.url)) return send(request)
    const url = new URL(request.url)
    if (!url.searchParams.get('dry_run')) url.searchParams.set('dry_run', 'true')
    const changed = new Request(url, request)
    if (!changed.headers.get('Idempotency-Key')) changed.headers.set('Idempotency-Key', createKey())
    return send(changed)
  }

const start = async () => {
  const content = await (await fetch(new URL('docs/openapi.json', server))).json()
  Scalar.createApiReference('#reference', {
    content,
    // The server that serves this page, by whatever name it was reached.
    servers: [{ url: server.href.replace(/\/$/, '') }],
    customFetch: createSend(createIsChange(content.paths)),
    authentication: { preferredSecurityScheme: 'apiKey' },
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: 'never',
    telemetry: false,
    withDefaultFonts: false,
    hideClientButton: true,
    hideSearch: true,
    hideDarkModeToggle: true,
    hiddenClients: true,
    persistAuth: false,
    documentDownloadType: 'none',
    defaultOpenFirstTag: false,
    darkMode: document.documentElement.classList.contains('dark'),
  })
}

if (typeof Scalar !== 'undefined') void start()
