import { sealAccountSecret } from '../../server/provider/account-secrets.ts'
import { applyHealthFacts } from '../../server/domains/health/record.ts'
import { reasonsEndedByCall } from '../../server/domains/health/rules.ts'
import { createEmit } from '../../server/kernel/emit.ts'
import { scheduleCheck } from '../../storage/channels/health.ts'
import type { Db } from '../../storage/database.ts'
import { type EventRow, insertEvents } from '../../storage/events/events.ts'
import {
  type AccountFields,
  type AccountRow,
  deleteProviderAccount,
  insertProviderAccount,
  listProviderAccounts,
  updateProviderAccount,
} from '../../storage/channels/provider-accounts.ts'
import { requireNoProviderOwner } from '../../storage/channels/provider-owners.ts'
import { usageError } from '../error.ts'
import { createArgumentReader, type ReadArgument } from '../values.ts'
import { explainOwner } from './channels.ts'
import { nameFlag, notFoundError, nothingToChangeError, omitUndefined, stringFlag } from './flags.ts'
import { loadBusinessTime } from './reports.ts'
import { openSealer } from './sealing.ts'
import type { AdminFlags, AdminGroup, AdminSession } from './verb.ts'

const parseAccountId = (text: string): string => {
  if (!/^[\w.-]{1,64}$/.test(text) || /^workspace\d+$/.test(text))
    throw usageError(
      `<account> must be the id of an account at the provider, not "${text.slice(0, 100)}".`,
      '<account>',
      'For example 102290129340398.',
    )
  return text
}

/**
 * Reads a secret from a file or from standard input; null for `none`. It is never taken from the command
 * line, which other users of the machine can read, and shells remember.
 */
const secretFlag = async (
  flags: AdminFlags,
  name: 'token' | 'appSecret' | 'verifyToken',
  flag: string,
  read: ReadArgument,
): Promise<string | null | undefined> => {
  const value = stringFlag(flags, name)
  if (value === undefined) return undefined
  if (value === 'none' && name !== 'token') return null
  if (value !== '-' && !value.startsWith('@'))
    throw usageError(
      `${flag} is not read from the command line, which others can see.`,
      flag,
      `Give it in a file (${flag} @FILE) or on standard input (${flag} -).`,
    )
  const secret = (await read(value, flag)).trim()
  if (!/^[\x21-\x7e]{1,4096}$/.test(secret))
    throw usageError(`${flag} must be one word of at most 4096 ASCII characters.`, flag)
  return secret
}

/** Reads the fields that the flags give, with their secrets sealed. */
const readFields = async (
  session: AdminSession,
  flags: AdminFlags,
  account: { workspace_id: string; account_id: string },
): Promise<AccountFields> => {
  const read = createArgumentReader(session.io)
  const token = await secretFlag(flags, 'token', '--token', read)
  const appSecret = await secretFlag(flags, 'appSecret', '--app-secret', read)
  const verifyToken = await secretFlag(flags, 'verifyToken', '--verify-token', read)
  const sealer = await openSealer(session, 'provider accounts')
  const seal = (what: 'token' | 'app_secret' | 'verify_token', secret: string | null | undefined) =>
    typeof secret === 'string' ? sealAccountSecret(sealer, account, what, secret) : secret
  const appId = nameFlag(flags, 'appId')
  return omitUndefined({
    name: nameFlag(flags),
    token: seal('token', token) ?? undefined,
    app_secret: seal('app_secret', appSecret),
    verify_token: seal('verify_token', verifyToken),
    app_id: appId === 'none' ? null : appId,
  }) as AccountFields
}

/**
 * Ends what the previous token caused and makes the servers ask the provider at once: with a new token sends
 * are tried again. `now`: business time.
 */
const restart = async (
  tx: Db,
  workspaceId: string,
  accountId: string,
  { now, realNow }: { now: string; realNow: string },
): Promise<void> => {
  const events: EventRow[] = []
  const context = { tx, workspaceId, now, emit: createEmit(events, now) }
  await applyHealthFacts(
    tx,
    () => context,
    { accountId },
    () => [{ kind: 'ended', reasons: [...reasonsEndedByCall, 'permission_missing'] }],
    realNow,
  )
  if (events.length > 0) await insertEvents(tx, workspaceId, events)
  await scheduleCheck(tx, workspaceId, accountId, 0, 0)
}

const noSuchAccountError = (accountId: string): Error =>
  notFoundError(
    `The workspace has no credentials of the account ${accountId}.`,
    '<account>',
    'List them with: wcrm admin accounts list',
  )

const columns = [
  'account_id',
  'name',
  'app_id',
  'has_token',
  'has_app_secret',
  'has_verify_token',
  'updated_at',
]

const accountArgument = ['<account>', 'id of the business account at the provider'] as const

const tokenFlag = ['--token <@file|->', 'access token, in a file or on standard input'] as const
const otherFlags = [
  ['--app-secret <@file|->', "secret of the app that signs the account's webhooks; none: the server's own"],
  ['--verify-token <@file|->', "verifies the webhook's address; none: the server's own"],
  ['--app-id <id>', 'id of the app, to upload template samples; or none'],
  ['--name <name>', 'display name'],
] as const

const write = async (
  session: AdminSession,
  argument: string,
  change: (tx: Db, workspaceId: string, accountId: string) => Promise<AccountRow>,
): Promise<AccountRow> => {
  const accountId = parseAccountId(argument)
  const workspaceId = (await session.workspace()).id
  const db = await session.db()
  const clock = { now: await loadBusinessTime(session, workspaceId), realNow: session.now }
  try {
    return await db.transaction().execute(async (tx) => {
      await requireNoProviderOwner(tx, workspaceId, { account_id: accountId }, null)
      const row = await change(tx, workspaceId, accountId)
      await restart(tx, workspaceId, accountId, clock)
      return row
    })
  } catch (error) {
    throw explainOwner(error)
  }
}

export const accountsGroup: AdminGroup = {
  name: 'accounts',
  summary: 'Credentials of business accounts at the provider',
  verbs: [
    {
      name: 'create',
      summary: 'Add the credentials of a business account',
      about:
        "Calls for the account's channels and templates are made with them, and its webhooks are verified " +
        "with them, on every server within a second. Accounts without any have the server's own " +
        '(WCRM_PROVIDER_…). They are stored encrypted, and shown nowhere.',
      scoped: true,
      argument: accountArgument,
      required: [tokenFlag],
      options: otherFlags,
      run: async (session, flags, argument) => {
        const fields = await readFields(session, flags, {
          workspace_id: (await session.workspace()).id,
          account_id: parseAccountId(argument),
        })
        return await write(session, argument, async (tx, workspaceId, accountId) => {
          const values = { ...fields, token: fields.token! }
          const row = await insertProviderAccount(tx, workspaceId, accountId, values, session.now)
          if (row) return row
          throw usageError(
            `The workspace has credentials of the account ${accountId} already.`,
            '<account>',
            `Change them with: wcrm admin accounts update ${accountId}`,
          )
        })
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the accounts with credentials of their own; no secrets are shown',
      scoped: true,
      columns,
      run: async (session) => ({
        data: await listProviderAccounts(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Replace credentials of a business account; omitted values stay',
      scoped: true,
      argument: accountArgument,
      options: [tokenFlag, ...otherFlags],
      run: async (session, flags, argument) => {
        const fields = await readFields(session, flags, {
          workspace_id: (await session.workspace()).id,
          account_id: parseAccountId(argument),
        })
        if (Object.keys(fields).length === 0) throw nothingToChangeError()
        return await write(session, argument, async (tx, workspaceId, accountId) => {
          const row = await updateProviderAccount(tx, workspaceId, accountId, fields, session.now)
          if (!row) throw noSuchAccountError(accountId)
          return row
        })
      },
    },
    {
      name: 'remove',
      summary: "Remove the credentials of a business account; the server's own take their place",
      scoped: true,
      argument: accountArgument,
      run: async (session, _flags, argument) => {
        const accountId = parseAccountId(argument)
        const workspaceId = (await session.workspace()).id
        const db = await session.db()
        const clock = { now: await loadBusinessTime(session, workspaceId), realNow: session.now }
        await db.transaction().execute(async (tx) => {
          if (!(await deleteProviderAccount(tx, workspaceId, accountId))) throw noSuchAccountError(accountId)
          await restart(tx, workspaceId, accountId, clock)
        })
        return { account_id: accountId, removed: true }
      },
    },
  ],
}
