import type { Db } from '../../storage/database.ts'
import type { ConversationState } from '../../storage/conversations.ts'
import type { Emit } from '../events.ts'

/** What every change of a conversation needs: also those that no request asked for. */
export type Flow = { tx: Db; workspaceId: string; now: string; emit: Emit }

export type { ConversationState }
