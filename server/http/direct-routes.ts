import type { DoorEvent } from './door.ts'

type Serve = (event: DoorEvent) => Promise<Response>
/** A path segment: what follows it by name, or as the value of a parameter. */
type Segment = {
  readonly named: Map<string, Segment>
  parameter?: Segment
  /** Of the path that ends here, by method. */
  readonly routes: Map<string, { serve: Serve; names: readonly string[]; matchedRoute: { route: string } }>
}

/** The handler of a request, and what the path says of it. */
type Found = { serve: Serve; event: Omit<DoorEvent, 'req'> }

const createSegment = (): Segment => ({ named: new Map(), routes: new Map() })

/** A path that needs no decoding, and nothing after it that is not a query. */
const PLAIN_PATH = /^((?:\/[\w-]+)+)(?:\?([^#]*))?$/

const NO_QUERY = new URLSearchParams()

/**
 * The routes of operations a second time, for requests that need nothing of h3: a plain path and a method
 * that has a route. They skip its router, event and response (measured: a tenth of a read's time). All others
 * are h3's, which has every route.
 */
export const createDirectRoutes = () => {
  const root = createSegment()
  return {
    /** `path`: with `:name` for parameters. */
    add: (method: string, path: string, serve: Serve): void => {
      const names: string[] = []
      let at = root
      for (const part of path.split('/').slice(1)) {
        if (part.startsWith(':')) {
          names.push(part.slice(1))
          at = at.parameter ??= createSegment()
        } else {
          const next = at.named.get(part) ?? createSegment()
          at.named.set(part, next)
          at = next
        }
      }
      at.routes.set(method, { serve, names, matchedRoute: { route: path } })
    },
    /** Returns the handler of a request; undefined when h3 has to route it. */
    find: (method: string, url: string): Found | undefined => {
      const plain = PLAIN_PATH.exec(url)
      if (!plain) return undefined
      const [, pathname, query] = plain
      const values: string[] = []
      let at: Segment | undefined = root
      for (const part of pathname!.slice(1).split('/')) {
        if (at === undefined) return undefined
        const named: Segment | undefined = at.named.get(part)
        if (named === undefined) values.push(part)
        at = named ?? at.parameter
      }
      const route = at?.routes.get(method)
      if (!route) return undefined
      const { serve, names, matchedRoute } = route
      const event = {
        url: { pathname: pathname!, searchParams: query ? new URLSearchParams(query) : NO_QUERY },
        context: { params: Object.fromEntries(names.map((name, i) => [name, values[i]!])), matchedRoute },
      }
      return { serve, event }
    },
  }
}
