import { type RawBuilder, sql } from 'kysely'

/*
 * Messages `m` by the ids of the provider, of which one message can have several (`message_key` in the migration). An
 * index has the keys.
 */

/** Whether one of these ids is the message's. */
export const isNamedBy = (providerIds: readonly string[]): RawBuilder<boolean> => sql`
  message_key(m.provider_id) = any(array(select message_key(given) from unnest(${providerIds}::text[]) as given))`

/** Those of these ids that are the message's. */
export const namedBy = (providerIds: readonly string[]): RawBuilder<string[]> => sql`
  array(select given from unnest(${providerIds}::text[]) as given
    where message_key(given) = message_key(m.provider_id))`
