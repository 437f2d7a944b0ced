import { sql } from 'kysely'
import { areExchangesFilled } from '../contact-exchanges.ts'
import type { Db } from '../database.ts'
import type { Sql } from './comparisons.ts'

/**
 * What has the times of messages: the table, or, until it has all of them, a view that reads the messages, without
 * any index of the times.
 */
export type ExchangeSource = { table: Sql; isStored: boolean }

export const storedExchanges: ExchangeSource = { table: sql`contact_exchanges`, isStored: true }

export const findExchangeSource = async (
  tx: Db,
  nodes: readonly { kind: string }[],
): Promise<ExchangeSource> =>
  !nodes.some(({ kind }) => kind === 'exchanges') || (await areExchangesFilled(tx))
    ? storedExchanges
    : { table: sql`computed_exchanges`, isStored: false }
