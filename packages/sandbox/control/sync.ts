import {
  assignProviderIds,
  listProviderChannels,
  listProviderTemplates,
  type ProviderTemplateRow,
} from '../../../storage/workspace/sandbox-control.ts'
import type { App } from '../../../server/app.ts'
import { WEBHOOK_PATH } from '../../../server/provider/settings.ts'
import type { ControlClient } from './client.ts'

/**
 * Returns the account at the sandbox of a channel or template: its own, else that of its workspace in
 * `accounts`, else one made from the workspace's id.
 */
export const providerAccountId = (
  row: { workspace_id: string; account_id: string | null },
  accounts: ReadonlyMap<string, string> = new Map(),
): string => row.account_id ?? accounts.get(row.workspace_id) ?? `workspace${row.workspace_id}`

export type SandboxSync = {
  /** Registers the numbers and templates of one workspace, or of all. */
  sync: (workspaceId?: string) => Promise<void>
  /** Registers those of all workspaces when a channel was added or changed since the last call. */
  syncChanges: () => Promise<void>
}

const SUBSCRIBE_TIMEOUT_MS = 10_000
/** How many numbers or templates one request registers: they may be very many, and its time and body are limited. */
const PART_SIZE = 200

/**
 * Registers numbers and templates that the sandbox does not know yet; the real provider has them before we
 * do.
 */
export const createSandboxSync = (app: App, control: ControlClient, verifyToken: string): SandboxSync => {
  let lastChannels = ''
  const subscribed = new Set<string>()
  /**
   * Sets the webhook URL of a sandbox that runs elsewhere. It may have been started with another one, so a
   * failure is only logged.
   */
  const subscribe = async (account: string): Promise<void> => {
    if (control.builtIn || subscribed.has(account)) return
    subscribed.add(account)
    try {
      await app.provider.subscribe(
        account,
        { url: `${app.config.publicUrl}${WEBHOOK_PATH}`, verifyToken },
        AbortSignal.timeout(SUBSCRIBE_TIMEOUT_MS),
      )
    } catch (error) {
      app.log.warn({ detail: (error as Error).message }, "The sandbox rejects this server's webhook URL")
    }
  }
  const registerTemplates = async (
    workspaceId: string | undefined,
    accounts: ReadonlyMap<string, string>,
  ): Promise<void> => {
    let rows: ProviderTemplateRow[] = []
    do {
      rows = await listProviderTemplates(app.db, workspaceId, rows.at(-1), PART_SIZE)
      const templates = rows.map((row) => ({
        id: row.provider_id,
        account_id: providerAccountId(row, accounts),
        name: row.name,
        language: row.language,
        category: row.category ?? 'UTILITY',
        status: row.status,
        components: row.components,
      }))
      if (templates.length > 0) await control.request('PUT', 'templates', { templates })
    } while (rows.length === PART_SIZE)
  }
  const sync = async (workspaceId?: string): Promise<void> => {
    await assignProviderIds(app.db, workspaceId)
    const channels = await listProviderChannels(app.db, workspaceId)
    const numbers = channels.map((channel) => ({
      id: channel.provider_phone_number_id,
      account_id: providerAccountId(channel),
      display_phone_number: channel.identifier ?? channel.provider_phone_number_id,
      verified_name: channel.name ?? `Channel ${channel.id}`,
      clock_offset_ms: Number(channel.clock_offset_ms),
    }))
    for (let i = 0; i < numbers.length; i += PART_SIZE)
      await control.request('PUT', 'numbers', { numbers: numbers.slice(i, i + PART_SIZE) })
    for (const account of new Set(channels.map((channel) => providerAccountId(channel))))
      await subscribe(account)
    const accounts = new Map(
      channels.toReversed().map((channel) => [channel.workspace_id, providerAccountId(channel)]),
    )
    await registerTemplates(workspaceId, accounts)
  }
  return {
    sync,
    syncChanges: async () => {
      const channels = JSON.stringify(await listProviderChannels(app.db))
      if (channels === lastChannels) return
      await sync()
      lastChannels = channels
    },
  }
}
