import { giveProviderIds, numberedChannels, providerTemplates } from '../../../storage/sandbox-control.ts'
import type { App } from '../../app.ts'
import { WEBHOOK_PATH } from '../../provider/settings.ts'
import type { Control } from './client.ts'

/** The account at the sandbox of what names none. */
export const accountOf = (
  row: { workspace_id: string; account_id: string | null },
  accounts: ReadonlyMap<string, string> = new Map(),
): string => row.account_id ?? accounts.get(row.workspace_id) ?? `workspace${row.workspace_id}`

export type Sync = {
  /** Of one workspace, or of all. */
  sync: (workspaceId?: string) => Promise<void>
  /** All workspaces, when a channel came or changed since the last time. */
  keepUp: () => Promise<void>
}

const SUBSCRIBE_MS = 10_000

/**
 * Tells the sandbox of the numbers and templates that it does not know yet; the true provider would have
 * them before we do.
 */
export const createSync = (app: App, control: Control, verifyToken: string): Sync => {
  let told = ''
  const subscribed = new Set<string>()
  /**
   * One that runs elsewhere is told where updates go; it may have been told otherwise when it was started,
   * so a failure is no more than noted.
   */
  const subscribe = async (account: string): Promise<void> => {
    if (control.builtIn || subscribed.has(account)) return
    subscribed.add(account)
    try {
      await app.provider.subscribe(
        account,
        { url: `${app.config.publicUrl}${WEBHOOK_PATH}`, verifyToken },
        AbortSignal.timeout(SUBSCRIBE_MS),
      )
    } catch (error) {
      app.log.warn(
        { detail: (error as Error).message },
        "the sandbox does not take this server's webhook address",
      )
    }
  }
  const sync = async (workspaceId?: string): Promise<void> => {
    await giveProviderIds(app.db, workspaceId)
    const channels = await numberedChannels(app.db, workspaceId)
    const numbers = channels.map((channel) => ({
      id: channel.provider_phone_number_id,
      account_id: accountOf(channel),
      display_phone_number: channel.identifier ?? channel.provider_phone_number_id,
      verified_name: channel.name ?? `Channel ${channel.id}`,
    }))
    if (numbers.length > 0) await control.ask('PUT', 'numbers', { numbers })
    for (const account of new Set(channels.map((channel) => accountOf(channel)))) await subscribe(account)
    const accounts = new Map(
      channels.toReversed().map((channel) => [channel.workspace_id, accountOf(channel)]),
    )
    const templates = (await providerTemplates(app.db, workspaceId)).map((row) => ({
      id: row.provider_id,
      account_id: accountOf(row, accounts),
      name: row.name,
      language: row.language,
      category: row.category ?? 'UTILITY',
      status: row.status,
      components: row.components,
    }))
    if (templates.length > 0) await control.ask('PUT', 'templates', { templates })
  }
  return {
    sync,
    keepUp: async () => {
      const present = JSON.stringify(await numberedChannels(app.db))
      if (present === told) return
      await sync()
      told = present
    },
  }
}
