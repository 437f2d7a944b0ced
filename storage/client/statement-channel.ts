import { tracingChannel } from 'node:diagnostics_channel'

/** A statement as it is sent, with its hints and without the values of its parameters; or `commit`. */
export type StatementMessage = { readonly text: string }

/** Tells of every statement, to whoever measures them. Without subscribers it costs next to nothing. */
export const statementChannel = tracingChannel<StatementMessage, unknown>('wcrm.statement')
