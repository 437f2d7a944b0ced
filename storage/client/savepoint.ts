import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** Runs `work` in a savepoint: when it throws, its changes are undone and the transaction goes on. */
export const inSavepoint = async <T>(tx: Db, work: () => Promise<T>): Promise<T> => {
  await sql`savepoint part`.execute(tx)
  try {
    const result = await work()
    await sql`release savepoint part`.execute(tx)
    return result
  } catch (error) {
    await sql`rollback to savepoint part`.execute(tx)
    throw error
  }
}

/** Runs `work` and undoes its changes, also when it throws; the transaction goes on. */
export const undone = async <T>(tx: Db, work: () => Promise<T>): Promise<T> => {
  await sql`savepoint tried`.execute(tx)
  try {
    return await work()
  } finally {
    await sql`rollback to savepoint tried`.execute(tx)
  }
}
