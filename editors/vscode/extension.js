// Starts the language server of nkitools for Python files, and adds two commands.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function makeClient() {
  const [command, ...args] = vscode.workspace.getConfiguration("nkitools").get("command");
  const server = { command, args };
  const options = {
    documentSelector: [{ scheme: "file", language: "python" }],
    synchronize: { configurationSection: "nkitools" },
    middleware: { executeCommand },
  };
  return new LanguageClient("nkitools", "nkitools", server, options);
}

// The server answers with Markdown, which is shown beside the code.
async function executeCommand(command, args, next) {
  const answer = await next(command, args);
  if (command === "nkitools.explain" && typeof answer === "string") {
    const document = await vscode.workspace.openTextDocument({ language: "markdown", content: answer });
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  }
  return answer;
}

async function simulateFile() {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  await editor.document.save();
  await vscode.commands.executeCommand("nkitools.simulate", editor.document.uri.toString());
}

async function restart() {
  await client.stop();
  client = makeClient();
  await client.start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("nkitools.simulateFile", simulateFile),
    vscode.commands.registerCommand("nkitools.restart", restart),
  );
  client = makeClient();
  await client.start();
}

function deactivate() {
  return client === undefined ? undefined : client.stop();
}

module.exports = { activate, deactivate };
