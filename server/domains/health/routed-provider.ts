import {
  type CallOwner,
  type CallOwnerRow,
  findCallOwner,
} from '../../../storage/channels/provider-accounts.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import type { WebhookGuard } from '../../outbound-guard.ts'
import { unsealAccount } from '../../provider/account-secrets.ts'
import { createAdapter } from '../../provider/adapter.ts'
import { recordCall, toProblemKey } from './observe.ts'
import type { Provider } from '../../provider/port.ts'
import type { ProviderSettings } from '../../provider/settings.ts'

/** How long credentials are used before they are read again: a change is in force within a second. */
const MAX_AGE_MS = 900
/** How long they are used while the database does not answer. */
const MAX_STALE_MS = 60_000
const MAX_ENTRIES = 10_000

/** Whose a call is, and the client with the credentials of that account. */
type Route = {
  owner: CallOwner
  row: CallOwnerRow | undefined
  client: Provider
  /** When it was read, by `performance.now()`. */
  readAt: number
  /** The problem that was recorded last: many calls that fail alike are recorded once. */
  recorded?: string | undefined
}
type Entry = { loadedAt: number; route: Promise<Route> }

/** What each call of the provider is made for, from its arguments. */
const ownersOf: {
  readonly [K in keyof Provider]: (...args: Parameters<Provider[K]>) => CallOwner | undefined
} = {
  send: (from) => from,
  findSent: (from) => from,
  uploadMedia: (from) => from,
  mediaInfo: (_id, _signal, owner) => owner,
  downloadMedia: (_url, _max, _signal, owner) => owner,
  phoneNumbers: (accountId) => ({ accountId }),
  phoneNumber: (from) => from,
  subscribe: (accountId) => ({ accountId }),
  createTemplate: (accountId) => ({ accountId }),
  editTemplate: (_id, _change, _signal, owner) => owner,
  listTemplates: (accountId) => ({ accountId }),
  archiveTemplates: (accountId) => ({ accountId }),
  unarchiveTemplates: (accountId) => ({ accountId }),
  deleteTemplate: (accountId) => ({ accountId }),
  uploadSample: (_file, _signal, owner) => owner,
  createLink: (from) => from,
  updateLink: (from) => from,
  findLink: (from) => from,
  listLinks: (from) => from,
  deleteLink: (from) => from,
}

/** Both are certain not to have been sent. */
const unreadableProblem = (): Problem =>
  new Problem(
    'upstream_unavailable',
    'The credentials for the messaging provider could not be read; nothing was sent.',
    { reason: 'unreachable' },
  )
const sealedElsewhereProblem = (accountId: string): Problem =>
  new Problem(
    'service_unconfigured',
    `The credentials of the account ${accountId} were sealed with a WCRM_SECRET that this server does not ` +
      'have. Start it with that secret, or set them again: wcrm admin accounts update.',
    { reason: 'provider_unconfigured' },
  )

const noteSuccess = async (app: App, name: keyof Provider, found: Route): Promise<void> => {
  if (!found.row?.has_problem) return
  // Until the route is read again: another call that succeeds has nothing to add.
  found.row.has_problem = false
  found.recorded = undefined
  await recordCall(app, name, found.owner, found.row, undefined)
}

const noteProblem = async (app: App, name: keyof Provider, found: Route, problem: Problem): Promise<void> => {
  const key = toProblemKey(name, problem)
  if (!found.row || key === undefined || found.recorded === key) return
  found.recorded = key
  found.row.has_problem = true
  await recordCall(app, name, found.owner, found.row, problem)
}

/**
 * Creates the provider that the service calls: each call is made with the credentials of the account that it
 * concerns, the server's own where that has none, and what its outcome says about channels is recorded. A
 * sandbox has no accounts of others, so that all calls are made with its own credentials.
 */
export const createRoutedProvider = (
  settings: ProviderSettings,
  guard: WebhookGuard,
  getApp: () => App,
): Provider => {
  const entries = new Map<string, Entry>()
  const shared = createAdapter({ ...settings, guard })

  const createClient = (row: CallOwnerRow | undefined): Provider => {
    if (settings.sandbox || !row?.account) return shared
    const secrets = unsealAccount(getApp().accountSealer, row.account)
    if (!secrets) throw sealedElsewhereProblem(row.account.account_id)
    return createAdapter({ ...settings, guard, token: secrets.token, appId: secrets.appId ?? undefined })
  }

  /** Reads whose a call is. While the database does not answer, `known` is used for a while. */
  const loadRoute = async (owner: CallOwner, known: Entry | undefined): Promise<Route> => {
    const readAt = performance.now()
    let row: CallOwnerRow | undefined
    try {
      row = await findCallOwner(getApp().db, owner)
    } catch (error) {
      getApp().log.warn(errorLogDetails(error), 'Cannot read the credentials of an account')
      const stale = await known?.route.catch(() => undefined)
      if (stale && readAt - stale.readAt <= MAX_STALE_MS) return stale
      throw unreadableProblem()
    }
    return { owner, row, client: createClient(row), readAt }
  }

  const findRoute = async (owner: CallOwner): Promise<Route> => {
    const key = JSON.stringify([owner.phoneNumberId ?? null, owner.accountId ?? null])
    const known = entries.get(key)
    const now = performance.now()
    if (known && now - known.loadedAt <= MAX_AGE_MS) return await known.route
    if (entries.size >= MAX_ENTRIES) entries.clear()
    const entry: Entry = { loadedAt: now, route: loadRoute(owner, known) }
    entries.set(key, entry)
    try {
      return await entry.route
    } catch (error) {
      // Nothing was read: the next call tries again.
      if (entries.get(key) === entry) entries.delete(key)
      throw error
    }
  }

  const routeOf = async (owner: CallOwner | undefined): Promise<Route> =>
    owner && (owner.phoneNumberId ?? owner.accountId ?? null) !== null
      ? await findRoute(owner)
      : { owner: {}, row: undefined, client: shared, readAt: 0 }

  const route = <K extends keyof Provider>(name: K) =>
    (async (...args: never[]) => {
      const found = await routeOf((ownersOf[name] as (...a: never[]) => CallOwner | undefined)(...args))
      const call = found.client[name] as (...a: never[]) => Promise<unknown>
      try {
        const result = await call(...args)
        await noteSuccess(getApp(), name, found)
        return result
      } catch (error) {
        if (error instanceof Problem) await noteProblem(getApp(), name, found, error)
        throw error
      }
    }) as unknown as Provider[K]

  return Object.fromEntries(
    (Object.keys(ownersOf) as (keyof Provider)[]).map((name) => [name, route(name)]),
  ) as unknown as Provider
}
